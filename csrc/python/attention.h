// The binding of attention to blocks of keys.
#pragma once

#include <pybind11/pybind11.h>

namespace renga::python {

void bind_attention(pybind11::module_& core);

}  // namespace renga::python
