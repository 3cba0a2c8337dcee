// bfloat16 arrays shared with other libraries through DLPack; NumPy shares all other dtypes.
#pragma once

#include <pybind11/pybind11.h>

#include "tensor/array.h"

namespace renga::python {

namespace py = pybind11;

// A capsule "dltensor" over the memory of an array on the host; it keeps the memory alive.
py::capsule to_dlpack(const Array& x);
// Consumes a capsule "dltensor" of bfloat16 numbers in host memory and returns an array over that
// memory. Throws ValueError for other capsules.
Array from_dlpack(const py::capsule& capsule);

void bind_dlpack(py::module_& m);

}  // namespace renga::python
