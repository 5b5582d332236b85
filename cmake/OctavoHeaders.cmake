# Target check_headers: each header of src and include compiles alone, as the only line of a source.
file(GLOB_RECURSE headers CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}" "${PROJECT_SOURCE_DIR}/src/*.h"
     "${PROJECT_SOURCE_DIR}/include/*.h")
set(sources)
foreach(header IN LISTS headers)
  string(REGEX REPLACE "^(src|include)/" "" path "${header}")
  set(source "${PROJECT_BINARY_DIR}/headers/${path}.cc")
  file(CONFIGURE OUTPUT "${source}" CONTENT "#include \"${path}\"\n")
  list(APPEND sources "${source}")
endforeach()
add_library(check_headers OBJECT EXCLUDE_FROM_ALL ${sources})
target_link_libraries(check_headers PRIVATE octavo_options)
