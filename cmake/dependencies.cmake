find_package(Threads REQUIRED)
find_package(OpenMP REQUIRED COMPONENTS CXX)
find_package(fmt REQUIRED)
find_package(cereal REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(hwy REQUIRED IMPORTED_TARGET libhwy)
pkg_check_modules(md REQUIRED IMPORTED_TARGET libmd)  # SHA-256

# Debian keeps each OpenBLAS in a folder of its own behind one alternative; we name the folder, so that the build
# that was asked for is the one that runs.
add_library(carousel_blas INTERFACE)
if(NOT CAROUSEL_BLAS STREQUAL "none")
  find_path(CAROUSEL_BLAS_INCLUDE cblas.h PATH_SUFFIXES
            ${CMAKE_LIBRARY_ARCHITECTURE}/openblas-${CAROUSEL_BLAS} openblas-${CAROUSEL_BLAS} openblas REQUIRED)
  find_library(CAROUSEL_BLAS_LIBRARY openblas PATH_SUFFIXES
               ${CMAKE_LIBRARY_ARCHITECTURE}/openblas-${CAROUSEL_BLAS} openblas-${CAROUSEL_BLAS} REQUIRED)
  target_include_directories(carousel_blas SYSTEM INTERFACE ${CAROUSEL_BLAS_INCLUDE})
  target_link_libraries(carousel_blas INTERFACE ${CAROUSEL_BLAS_LIBRARY})
  target_compile_definitions(carousel_blas INTERFACE CAROUSEL_HAVE_BLAS=1)
endif()
