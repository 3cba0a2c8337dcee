// Where the user's program called an operation.
#pragma once

#include <pybind11/pybind11.h>

namespace renga::python {

void bind_call_sites(pybind11::module_& m);

}  // namespace renga::python
