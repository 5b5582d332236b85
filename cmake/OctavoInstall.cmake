# cmake --install: the program, the public headers, the libraries, and what find_package(octavo) reads.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

get_property(libraries GLOBAL PROPERTY OCTAVO_LIBRARIES)
list(REMOVE_ITEM libraries octavo_bench)  # of the program alone
set(config_folder "${CMAKE_INSTALL_LIBDIR}/cmake/octavo")
set_target_properties(octavo_api PROPERTIES EXPORT_NAME octavo)  # octavo::octavo

if(OCTAVO_PROGRAM)
  install(TARGETS octavo RUNTIME)
endif()
install(TARGETS ${libraries} octavo_options EXPORT octavo-targets ARCHIVE)
install(DIRECTORY include/octavo TYPE INCLUDE)
install(EXPORT octavo-targets NAMESPACE octavo:: DESTINATION "${config_folder}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/octavo-config-version.cmake" COMPATIBILITY SameMinorVersion)
install(FILES cmake/octavo-config.cmake cmake/OctavoDependencies.cmake
              "${PROJECT_BINARY_DIR}/octavo-config-version.cmake" DESTINATION "${config_folder}")
