# Finds NCCL: NVIDIA's wheel in the build's Python first, then NCCL_ROOT and the system. The wheel
# holds a versioned library only, so it is named by full path.
if(Python_EXECUTABLE AND NOT NCCL_ROOT)
  execute_process(
    COMMAND "${Python_EXECUTABLE}" -c
      "from importlib.metadata import files
found = {f.name: f.locate() for f in files('nvidia-nccl-cu13')}
print(found['nccl.h'], found['libnccl.so.2'], sep=';')"
    OUTPUT_VARIABLE found OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
  if(NOT failed)
    list(POP_FRONT found nccl_header NCCL_LIBRARY)
    cmake_path(GET nccl_header PARENT_PATH NCCL_INCLUDE_DIR)
  endif()
endif()
find_path(NCCL_INCLUDE_DIR nccl.h)
find_library(NCCL_LIBRARY nccl)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(NCCL REQUIRED_VARS NCCL_LIBRARY NCCL_INCLUDE_DIR)
if(NCCL_FOUND AND NOT TARGET NCCL::NCCL)
  add_library(NCCL::NCCL INTERFACE IMPORTED)
  set_target_properties(NCCL::NCCL PROPERTIES
    INTERFACE_LINK_LIBRARIES "${NCCL_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${NCCL_INCLUDE_DIR}")
endif()
