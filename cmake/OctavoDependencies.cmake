# Every third-party library, found here and nowhere else (Debian 12 packages; ./dev installs them). Installed too: a program that
# embeds the static libraries needs those without an "if".
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(Eigen3 REQUIRED)
# Debian's dnnl-config.cmake insists on OpenCL, which Octavo does not use; and its library runs on libgomp, whose thread
# count the kernels set to one.
find_library(OCTAVO_DNNL_LIBRARY dnnl REQUIRED)
find_library(OCTAVO_GOMP_LIBRARY NAMES gomp libgomp.so.1 REQUIRED)
add_library(octavo_dnnl INTERFACE IMPORTED)
target_link_libraries(octavo_dnnl INTERFACE "${OCTAVO_DNNL_LIBRARY}" "${OCTAVO_GOMP_LIBRARY}")
find_package(OpenSSL REQUIRED COMPONENTS Crypto)
find_package(ZLIB REQUIRED)

find_package(PkgConfig REQUIRED)
pkg_check_modules(pcre2 REQUIRED IMPORTED_TARGET libpcre2-8)
pkg_check_modules(utf8proc REQUIRED IMPORTED_TARGET libutf8proc)

if(OCTAVO_PROGRAM)
  find_package(CLI11 REQUIRED)
  pkg_check_modules(libedit REQUIRED IMPORTED_TARGET libedit)
endif()
if(OCTAVO_TESTS)
  find_package(GTest REQUIRED)
endif()
