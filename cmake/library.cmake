include(CMakePackageConfigHelpers)

add_library(carousel STATIC
  $<TARGET_OBJECTS:carousel_tensor> $<TARGET_OBJECTS:carousel_autograd>
  $<TARGET_OBJECTS:carousel_nn> $<TARGET_OBJECTS:carousel_optim>)
add_library(carousel::carousel ALIAS carousel)
target_include_directories(carousel PUBLIC
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_link_libraries(carousel PUBLIC fmt::fmt
  PRIVATE OpenMP::OpenMP_CXX PkgConfig::hwy PkgConfig::md carousel_blas)
carousel_compile_settings(carousel)

# Installation: the archive, the headers of every room without the kernels and what leads to them, and what
# find_package(carousel) reads.
set(config_folder ${CMAKE_INSTALL_LIBDIR}/cmake/carousel)
set_target_properties(carousel_blas PROPERTIES EXPORT_NAME blas)
install(TARGETS carousel carousel_blas EXPORT carousel-targets)
install(EXPORT carousel-targets NAMESPACE carousel:: DESTINATION ${config_folder})
install(DIRECTORY tensor autograd nn optim DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/carousel
  FILES_MATCHING PATTERN "*.h" PATTERN kernels EXCLUDE PATTERN operands.h EXCLUDE
  PATTERN dispatch.h EXCLUDE PATTERN scalar.h EXCLUDE)
configure_package_config_file(cmake/carousel-config.cmake.in carousel-config.cmake
  INSTALL_DESTINATION ${config_folder} NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(carousel-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES
  ${PROJECT_BINARY_DIR}/carousel-config.cmake ${PROJECT_BINARY_DIR}/carousel-config-version.cmake
  DESTINATION ${config_folder})
