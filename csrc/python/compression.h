// The binding of the compression of gradients.
#pragma once

#include <pybind11/pybind11.h>

namespace renga::python {

void bind_compression(pybind11::module_& core);

}  // namespace renga::python
