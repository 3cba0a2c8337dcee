# Finds oneDNN: $DNNL_ROOT first, then the wheel in the build's Python, then the system.
# Header and library must come from one installation, so both are looked up in the same place.
if(NOT DEFINED DNNL_ROOT AND DEFINED ENV{DNNL_ROOT})
  set(DNNL_ROOT "$ENV{DNNL_ROOT}")
endif()
if(NOT DNNL_ROOT AND Python_EXECUTABLE)
  # The wheel's files lie outside its package: only its RECORD says where they went.
  execute_process(
    COMMAND "${Python_EXECUTABLE}" -c
      "from importlib.metadata import files
import pathlib
header = [f for f in files('onednn-devel-cpu-gomp') if f.name == 'dnnl.hpp' and 'oneapi' not in str(f)]
library = [f for f in files('onednn-cpu-gomp') if f.name == 'libdnnl.so.3']
print(pathlib.Path(header[0].locate()).resolve().parent, pathlib.Path(library[0].locate()).resolve(), sep=';')"
    OUTPUT_VARIABLE found OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
  if(NOT failed)
    list(GET found 0 DNNL_INCLUDE_DIR)
    list(GET found 1 DNNL_LIBRARY)
  endif()
endif()
find_path(DNNL_INCLUDE_DIR dnnl.hpp HINTS ${DNNL_ROOT}/include)
find_library(DNNL_LIBRARY dnnl HINTS ${DNNL_ROOT}/lib ${DNNL_ROOT}/lib64)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(OneDNN REQUIRED_VARS DNNL_LIBRARY DNNL_INCLUDE_DIR)
if(OneDNN_FOUND AND NOT TARGET OneDNN::OneDNN)
  add_library(OneDNN::OneDNN SHARED IMPORTED)
  set_target_properties(OneDNN::OneDNN PROPERTIES
    IMPORTED_LOCATION "${DNNL_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES "${DNNL_INCLUDE_DIR}")
endif()
