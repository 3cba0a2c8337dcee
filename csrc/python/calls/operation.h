// List entries of operations as Python sees them.
#pragma once

#include <pybind11/pybind11.h>

#include "ops/list.h"

namespace renga::python {

namespace py = pybind11;

struct Operation {
  Op op;
  py::tuple arguments;  // their names
  bool takes_arrays;    // which graph nodes do not have among their inputs
};

void bind_operation(py::module_& m);

}  // namespace renga::python
