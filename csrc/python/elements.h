// Variables from and to messages.
#pragma once

#include <pybind11/pybind11.h>

namespace renga::python {

void bind_elements(pybind11::module_& m);

}  // namespace renga::python
