// Arrays on CUDA devices as Python sees them: CuPy's, or those of renga.backends.cuda_arrays.
#pragma once

#include <pybind11/pybind11.h>

#include "tensor/array.h"

namespace renga::python {

namespace py = pybind11;

// How array.cpp converts them.
struct DeviceArrays {
  // Whether Python has an array type for the memory of a device.
  bool (*has)(Device device);
  // Whether an object is an array of that type.
  bool (*is)(py::handle object);
  // The Python array over the memory of `x`, which it shares; of bfloat16 numbers, a float32 copy.
  py::object (*to)(const Array& x);
  // The memory of a Python array, which lives as long as the result's storage does. Throws
  // TypeError for dtypes that the core lacks.
  Array (*from)(py::handle array);
  // Has the thread compute on the stream on which Python will use an array that it gets again.
  void (*follow)(py::handle array);
};
// Null until Python has registered its types, and in modules that have arrays of the host alone.
extern const DeviceArrays* device_arrays;

void bind_device_arrays(py::module_& m);

}  // namespace renga::python
