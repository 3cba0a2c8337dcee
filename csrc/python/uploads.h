#pragma once

#include <pybind11/pybind11.h>

namespace renga::python {

// Pinned arrays, and copies of arrays to a device beside what it computes.
void bind_uploads(pybind11::module_& m);

}  // namespace renga::python
