#!/bin/sh
# House rules that a search can check. Prints every line that breaks one; exits 1 if there is any.
# Usage: sh scripts/check_rules.sh
set -eu
cd "$(dirname "$0")/.."
broken=0

# forbid RULE PATTERN grep-arguments...: no line may match.
forbid() {
  rule=$1 pattern=$2
  shift 2
  if grep -rnE --include='*.h' --include='*.cpp' --include='CMakeLists.txt' --include='*.cmake' \
      --include='CMakePresets.json' -e "$pattern" "$@"; then
    echo "^ broken rule: $rule" >&2
    broken=1
  fi
}

rooms='tensor autograd nn optim'
everything="$rooms examples tests cmake CMakeLists.txt CMakePresets.json"

forbid 'true tiny numbers and NaN, one binary for every processor' \
  '^[^#]*(-ffast-math|-Ofast|-funsafe-math|-march=native|-DNDEBUG)' $everything
forbid 'a test that never runs is no test' 'DISABLED_|GTEST_SKIP' tests
forbid 'OpenMP, BLAS and SIMD only in tensor/kernels/' \
  '#pragma omp|#include <(omp|cblas|openblas_config)\.h>|#include [<"]hwy/' \
  --exclude-dir=kernels $rooms examples
forbid 'no cereal in a public header' '#include <cereal' --exclude='*.cpp' --exclude-dir=kernels $rooms
forbid 'captures written out by name in autograd/ and nn/' '\[[=&](,[^]]*)?\] *(\(|\{|mutable)' autograd nn
forbid 'includes read <carousel/room/name.h>' '#include "' --exclude-dir=kernels $rooms

# Arrows point one way: tensor <- autograd <- nn <- optim <- examples.
forbid 'tensor/ sees no other room' '#include <carousel/(autograd|nn|optim|examples)/' tensor
forbid 'autograd/ sees tensor/ only' '#include <carousel/(nn|optim|examples)/' autograd
forbid 'nn/ does not see optim/' '#include <carousel/(optim|examples)/' nn
forbid 'optim/ does not see examples/' '#include <carousel/examples/' optim

exit $broken
