// The binding of the simulator of parallel strategies.
#pragma once

#include <pybind11/pybind11.h>

namespace renga::python {

void bind_planning(pybind11::module_& core);

}  // namespace renga::python
