#!/bin/sh
# Sets up, builds everything and runs the whole suite.
# Usage: sh tests/run.sh [--build-only]
set -eu
cd "$(dirname "$0")/.."

case ${1-} in
  '' | --build-only) ;;
  *) echo 'usage: sh tests/run.sh [--build-only]' >&2; exit 2 ;;
esac

sh scripts/setup.sh build
sh scripts/build.sh release all
[ "${1-}" = --build-only ] || ctest --preset release --progress
