#!/bin/sh
# Configures a preset and builds a target of it.
# Usage: sh scripts/build.sh PRESET TARGET
set -eu
cd "$(dirname "$0")/.."
mkdir -p build
log=build/configure-$1.log
cmake --preset "$1" >"$log" 2>&1 || { cat "$log" >&2; exit 1; }
cmake --build --preset "$1" --target "$2" --parallel "$(nproc)"
