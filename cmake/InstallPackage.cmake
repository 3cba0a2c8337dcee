# For find_package(renga): the headers in renga/include and the targets in renga/cmake, beside the
# libraries. In a wheel, all of this is in the Python package.
install(EXPORT renga NAMESPACE renga:: DESTINATION renga/cmake FILE renga-targets.cmake)
include(CMakePackageConfigHelpers)
write_basic_package_version_file(renga-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES cmake/renga-config.cmake ${CMAKE_CURRENT_BINARY_DIR}/renga-config-version.cmake
  DESTINATION renga/cmake)

# Installed headers include each other by names that begin with renga/, so that they cannot be
# mistaken for a program's own.
set(folders "renga|settings|devices|tensor|simd|lazy|autograd|ops|optimizers|nn|transport|context")
set(folders "${folders}|shared_memory|collectives|channel|data_parallel|spatial|communicator|work|world")
install(CODE "
  set(folders [[${folders}]])
  set(sources [[${CMAKE_CURRENT_SOURCE_DIR}/csrc;${CMAKE_CURRENT_SOURCE_DIR}/communicators]])")
install(SCRIPT cmake/install_headers.cmake)
