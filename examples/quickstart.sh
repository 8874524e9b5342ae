#!/bin/sh
# From a fresh Debian 12 to a trained character model: set-up, build, two minutes of training, a sample.
# Usage: sh examples/quickstart.sh
set -eu
cd "$(dirname "$0")/.."

sh scripts/setup.sh build
sh scripts/build.sh release char_lm

out=out/quickstart
char_lm=build/release/bin/char_lm
$char_lm train --out "$out" --steps 3000
echo
$char_lm sample "$out" --length 400
echo
echo "checkpoint: $out"
