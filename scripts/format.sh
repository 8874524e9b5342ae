#!/bin/sh
# Formats every source in place; with --dry-run --Werror it only complains, as .ci/run does.
# Usage: sh scripts/format.sh [clang-format arguments...]
set -eu
cd "$(dirname "$0")/.."
find tensor autograd nn optim examples tests \( -name '*.h' -o -name '*.cpp' \) -exec clang-format-14 -i "$@" {} +
