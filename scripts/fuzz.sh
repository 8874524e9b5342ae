#!/bin/sh
# Runs every fuzzer of tests/fuzz for some seconds, one a core, from the kept corpus; an input that breaks a reader is
# left in build/fuzz/found.
# Usage: sh scripts/fuzz.sh SECONDS
set -eu
cd "$(dirname "$0")/.."
seconds=${1:?usage: sh scripts/fuzz.sh SECONDS}
sh scripts/build.sh fuzz fuzzers
mkdir -p build/fuzz/found

# New inputs go to the first folder; the kept ones are only read. No reader may take a second or much memory.
run_one='
  name=$1; grown=build/fuzz/corpus/$name; log=build/fuzz/$name.log
  mkdir -p "$grown"
  if ! build/fuzz/bin/fuzz_$name -max_total_time=$2 -timeout=5 -rss_limit_mb=600 -max_len=16384 \
      -artifact_prefix=build/fuzz/found/$name- "$grown" tests/fuzz/corpus/$name >"$log" 2>&1; then
    tail -n 40 "$log"; echo "fuzz: $name FAILED"; exit 255
  fi
  echo "fuzz: $name passed, $(sed -n "s/^Done \([0-9]*\) runs.*/\1/p" "$log") inputs"
'
find tests/fuzz/corpus -mindepth 1 -maxdepth 1 -type d -printf '%f\n' | sort |
  xargs -P "$(nproc)" -I NAME sh -c "$run_one" fuzz NAME "$seconds"
