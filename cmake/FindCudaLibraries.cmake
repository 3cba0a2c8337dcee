# Finds cuBLAS, cuBLASLt and cuDNN: NVIDIA's wheels in the build's Python first, then the system. The wheels
# hold versioned libraries only, so they are named by full path.
if(Python_EXECUTABLE)
  execute_process(
    COMMAND "${Python_EXECUTABLE}" -c
      "from importlib.metadata import files
found = {f.name: f.locate() for n in ('nvidia-cublas', 'nvidia-cudnn-cu13') for f in files(n)}
names = 'cublas_v2.h', 'cudnn.h', 'libcublas.so.13', 'libcudnn.so.9', 'libcublasLt.so.13'
print(*(found[name] for name in names), sep=';')"
    OUTPUT_VARIABLE found OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
  if(NOT failed)
    list(POP_FRONT found cublas_header cudnn_header CUBLAS_LIBRARY CUDNN_LIBRARY CUBLASLT_LIBRARY)
    cmake_path(GET cublas_header PARENT_PATH CUBLAS_INCLUDE_DIR)
    cmake_path(GET cudnn_header PARENT_PATH CUDNN_INCLUDE_DIR)
  endif()
endif()
find_path(CUBLAS_INCLUDE_DIR cublas_v2.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
find_path(CUDNN_INCLUDE_DIR cudnn.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
find_library(CUBLAS_LIBRARY cublas HINTS ${CUDAToolkit_LIBRARY_DIR})
find_library(CUBLASLT_LIBRARY cublasLt HINTS ${CUDAToolkit_LIBRARY_DIR})
find_library(CUDNN_LIBRARY cudnn HINTS ${CUDAToolkit_LIBRARY_DIR})

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(CudaLibraries REQUIRED_VARS
  CUBLAS_LIBRARY CUBLASLT_LIBRARY CUDNN_LIBRARY CUBLAS_INCLUDE_DIR CUDNN_INCLUDE_DIR)
if(CudaLibraries_FOUND AND NOT TARGET CudaLibraries::CudaLibraries)
  add_library(CudaLibraries::CudaLibraries INTERFACE IMPORTED)
  set_target_properties(CudaLibraries::CudaLibraries PROPERTIES
    INTERFACE_LINK_LIBRARIES "${CUBLAS_LIBRARY};${CUBLASLT_LIBRARY};${CUDNN_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${CUBLAS_INCLUDE_DIR};${CUDNN_INCLUDE_DIR}")
endif()
