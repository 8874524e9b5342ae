#!/bin/sh
# From a fresh Debian 12 to a trained character model: set-up, build, about a minute of training, a sample. Run again,
# it only samples.
# Usage: sh examples/quickstart.sh
set -eu
cd "$(dirname "$0")/.."

sh scripts/setup.sh build
sh scripts/build.sh release char_lm

out=out/quickstart
steps=12000
char_lm=build/release/bin/char_lm
if [ "$($char_lm info "$out" 2>/dev/null | sed -n 's/^step: //p')" = "$steps" ]; then
  echo "$out holds a finished run: not trained again; a sample of it:"
else
  $char_lm train --out "$out" --steps "$steps" --overwrite
fi
echo
$char_lm sample "$out" --length 400
echo
echo "checkpoint: $out/checkpoint.carousel"
