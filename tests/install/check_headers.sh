#!/bin/sh
# Every Carousel header that an installed header includes must be installed too: kernels and helpers are not.
# Usage: sh check_headers.sh PREFIX/include
set -eu
cd "$1"
missing=0
for header in $(grep -rhoE '#include <carousel/[^>]+' carousel | sed 's/.*<//' | sort -u); do
  if [ ! -f "$header" ]; then
    missing=1
    echo "not installed: $header, included by" $(grep -rlF "<$header>" carousel) >&2
  fi
done
exit $missing
