# The sources of the CUDA library: kernels, and what is C++ in any case.
set(CSRC ${CMAKE_SOURCE_DIR}/csrc)
file(GLOB CUDA_KERNELS CONFIGURE_DEPENDS
  ${CSRC}/tensor/cuda/*.cu ${CSRC}/ops/*/cuda/*.cu ${CSRC}/optimizers/cuda/*.cu)
file(GLOB CUDA_SOURCES CONFIGURE_DEPENDS
  ${CSRC}/devices/cuda/*.cpp ${CSRC}/ops/*/cuda/*.cpp)
set(CUDA_BINDING ${CSRC}/python/cuda/module.cpp)
