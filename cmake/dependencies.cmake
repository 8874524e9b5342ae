# What the library links; carousel-config.cmake.in names the same for programs that link the installed archive.
find_package(OpenMP REQUIRED COMPONENTS CXX)
find_package(fmt REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(hwy REQUIRED IMPORTED_TARGET libhwy)
pkg_check_modules(md REQUIRED IMPORTED_TARGET libmd)  # SHA-256

# Headers only, in our sources and never in our headers.
find_package(cereal REQUIRED)
find_package(nlohmann_json REQUIRED)

if(CAROUSEL_PROGRAMS)
  find_package(CLI11 REQUIRED)
endif()
if(CAROUSEL_TESTS)
  find_package(GTest REQUIRED)
endif()

# Debian keeps each OpenBLAS in a folder of its own behind one alternative; we name the folder, which also becomes the
# run path of every program, so that the build that was asked for is the one that runs. Not cached: another
# CAROUSEL_BLAS in the same build folder must find another library.
add_library(carousel_blas INTERFACE)
if(NOT CAROUSEL_BLAS STREQUAL "none")
  set(suffixes ${CMAKE_LIBRARY_ARCHITECTURE}/openblas-${CAROUSEL_BLAS} openblas-${CAROUSEL_BLAS} openblas)
  find_path(blas_include cblas.h PATH_SUFFIXES ${suffixes} NO_CACHE REQUIRED)
  find_library(blas_library openblas PATH_SUFFIXES ${suffixes} NO_CACHE REQUIRED)
  message(STATUS "OpenBLAS: ${blas_library}")
  target_include_directories(carousel_blas SYSTEM INTERFACE $<BUILD_INTERFACE:${blas_include}>)
  target_compile_definitions(carousel_blas INTERFACE $<BUILD_INTERFACE:CAROUSEL_HAVE_BLAS=1>)
  target_link_libraries(carousel_blas INTERFACE ${blas_library})
endif()
