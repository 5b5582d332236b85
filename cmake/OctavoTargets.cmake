# One warnings target and four helpers: octavo_library, octavo_precompile, octavo_test, octavo_isa_sources.
add_library(octavo_options INTERFACE)
target_compile_features(octavo_options INTERFACE cxx_std_20)
target_include_directories(
  octavo_options INTERFACE "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src>"
                           "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>" "$<INSTALL_INTERFACE:include>")
# A program that embeds the library keeps its own warnings.
set(octavo_flags
    -Wall -Wextra -Wshadow -Wconversion -Wold-style-cast -Wundef -Wnon-virtual-dtor -Wdouble-promotion
    # a*b+c is fused only where the code says so, or results would differ between compilers
    -ffp-contract=off
    # GCC 12 warns of overlapping copies in "x" + std::string that cannot happen (GCC bug 105651).
    $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>)
if(OCTAVO_WERROR)
  list(APPEND octavo_flags -Werror)
endif()
if(OCTAVO_SANITIZE)
  list(APPEND octavo_flags -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
  target_link_options(octavo_options INTERFACE "$<BUILD_INTERFACE:-fsanitize=address,undefined>")
endif()
target_compile_options(octavo_options INTERFACE "$<BUILD_INTERFACE:${octavo_flags}>")
unset(octavo_flags)

# octavo_library(<folder> SOURCES ... DEPS <folders> LIBS <third-party targets, private>)
function(octavo_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS;LIBS" ${ARGN})
  list(TRANSFORM ARG_DEPS PREPEND octavo_)
  add_library(octavo_${name} STATIC ${ARG_SOURCES})
  target_link_libraries(octavo_${name} PUBLIC octavo_options ${ARG_DEPS} PRIVATE ${ARG_LIBS})
  set_property(GLOBAL APPEND PROPERTY OCTAVO_LIBRARIES octavo_${name})  # for cmake --install
endfunction()

# octavo_precompile(<target> <header> ...): parses headers that every source of the target includes once, not once a source.
# Sources include them all the same; the clang preset is without, and so proves it.
function(octavo_precompile name)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_precompile_headers(${name} PRIVATE ${ARGN})
    # What a compiler cache needs to know its way (ccache's manual, "Precompiled headers").
    target_compile_options(${name} PRIVATE -fpch-preprocess)
  endif()
endfunction()

# octavo_test(<name> SOURCES ... DEPS <folders> [LABEL fast|slow] [LIBS ...]): one gtest program, one ctest entry a test.
function(octavo_test name)
  cmake_parse_arguments(ARG "" "LABEL" "SOURCES;DEPS;LIBS" ${ARGN})
  if(NOT ARG_LABEL)
    set(ARG_LABEL fast)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  list(TRANSFORM ARG_DEPS PREPEND octavo_)
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}/tests")
  target_compile_definitions(${name} PRIVATE OCTAVO_TEST_DATA="${PROJECT_SOURCE_DIR}/tests/data"
                                             OCTAVO_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  target_link_libraries(${name} PRIVATE octavo_options ${ARG_DEPS} ${ARG_LIBS} GTest::gtest GTest::gtest_main)
  # Tests are compiled for minutes and run for seconds.
  target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O1>)
  # At -O1 GCC 12 warns of the moved-from half of a std::variant, which nobody reads.
  target_compile_options(${name} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
  octavo_precompile(${name} <gtest/gtest.h> <string> <vector>)
  # Discovery runs at test time: a program that cannot start fails its tests, not the build.
  include(GoogleTest)
  gtest_discover_tests(${name} TEST_PREFIX "${name}." PROPERTIES LABELS ${ARG_LABEL} TIMEOUT 600
                       DISCOVERY_MODE PRE_TEST)
endfunction()
