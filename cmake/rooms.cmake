# carousel_room(NAME SOURCES... [PRIVATE libraries]): one folder of the library as an object library carousel_NAME. A
# test links only the rooms it needs, so that an arrow pointing the wrong way does not link.
function(carousel_room name)
  cmake_parse_arguments(ARG "" "" "SOURCES;PRIVATE" ${ARGN})
  add_library(carousel_${name} OBJECT ${ARG_SOURCES})
  target_include_directories(carousel_${name} PUBLIC ${PROJECT_SOURCE_DIR}/include)
  target_link_libraries(carousel_${name} PUBLIC fmt::fmt PRIVATE ${ARG_PRIVATE})
  carousel_compile_settings(carousel_${name})
endfunction()

# Language level, warnings and sanitizers: for everything that is ours.
function(carousel_compile_settings target)
  target_compile_features(${target} PUBLIC cxx_std_20)
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF POSITION_INDEPENDENT_CODE ON)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor
    $<$<BOOL:${CAROUSEL_WERROR}>:-Werror>)
  # No mistakes of ours: GCC 12 sees an overlap in std::string's operator+ (its bug 105651), and clang reports an
  # `omp simd` loop that a sanitizer keeps it from vectorising.
  target_compile_options(${target} PRIVATE
    $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict> $<$<CXX_COMPILER_ID:Clang>:-Wno-pass-failed>)
  if(CAROUSEL_SANITIZE)
    target_compile_options(${target} PUBLIC
      -fsanitize=${CAROUSEL_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
    target_link_options(${target} PUBLIC -fsanitize=${CAROUSEL_SANITIZE})
  endif()
endfunction()
