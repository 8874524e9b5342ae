add_library(carousel STATIC
  $<TARGET_OBJECTS:carousel_tensor> $<TARGET_OBJECTS:carousel_autograd>
  $<TARGET_OBJECTS:carousel_nn> $<TARGET_OBJECTS:carousel_optim>)
add_library(carousel::carousel ALIAS carousel)
target_include_directories(carousel PUBLIC
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_link_libraries(carousel PUBLIC fmt::fmt
  PRIVATE OpenMP::OpenMP_CXX PkgConfig::hwy PkgConfig::md carousel_blas)
carousel_compile_settings(carousel)
