# The sources of the CUDA plugin: kernels, and what is C++ in any case.
set(CSRC ${CMAKE_SOURCE_DIR}/csrc)
file(GLOB CUDA_KERNELS CONFIGURE_DEPENDS
  ${CSRC}/tensor/cuda/*.cu ${CSRC}/ops/*/cuda/*.cu ${CSRC}/optimizers/cuda/*.cu)
file(GLOB CUDA_SOURCES CONFIGURE_DEPENDS
  ${CSRC}/devices/cuda/*.cpp ${CSRC}/ops/*/cuda/*.cpp)
list(APPEND CUDA_SOURCES ${CSRC}/python/cuda/module.cpp)
