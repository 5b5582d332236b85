# find_package(octavo) gives the target octavo::octavo. The libraries are static, so what they use must be there too.
include("${CMAKE_CURRENT_LIST_DIR}/OctavoDependencies.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/octavo-targets.cmake")
