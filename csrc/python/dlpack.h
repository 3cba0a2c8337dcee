// bfloat16 arrays shared with other libraries through DLPack; NumPy shares all other dtypes.
#pragma once

#include <pybind11/pybind11.h>

#include "tensor/array.h"

namespace renga::python {

namespace py = pybind11;

// A capsule "dltensor" over the array's memory, which it keeps alive. The array is in the host's
// memory.
py::capsule to_dlpack(const Array& x);
// The memory of a capsule "dltensor" of bfloat16 numbers in the host's memory, which thereby is
// used up. Throws ValueError for other capsules.
Array from_dlpack(const py::capsule& capsule);

void bind_dlpack(py::module_& m);

}  // namespace renga::python
