option(CAROUSEL_PROGRAMS "Build the example programs" ${PROJECT_IS_TOP_LEVEL})
option(CAROUSEL_TESTS "Build the tests and benchmarks" ${PROJECT_IS_TOP_LEVEL})
option(CAROUSEL_WERROR "Warnings in our own code are errors" OFF)
set(CAROUSEL_BLAS "openmp" CACHE STRING "Which OpenBLAS: openmp, serial, or none (plain products, slow)")
set_property(CACHE CAROUSEL_BLAS PROPERTY STRINGS openmp serial none)
set(CAROUSEL_SANITIZE "" CACHE STRING "Sanitizers, as for -fsanitize= (address,undefined or thread)")

if(PROJECT_IS_TOP_LEVEL)
  if(NOT CMAKE_BUILD_TYPE)
    set(CMAKE_BUILD_TYPE Release)
  endif()
  set(CMAKE_CXX_FLAGS_RELEASE "-O3" CACHE STRING "" FORCE)  # checks stay on: no -DNDEBUG, no -ffast-math
  set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
endif()
