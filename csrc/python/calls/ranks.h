// Converts what connects ranks, between what the core takes and what Python gives.
#pragma once

#include <pybind11/pybind11.h>

#include <memory>

#include "ops/normalization/multi_node.h"
#include "python/array.h"

namespace renga::python {

// A Python function of an array. Copies need no lock of Python's.
class PythonGather {
 public:
  explicit PythonGather(py::function function);
  Array operator()(const Array& own) const;
  py::handle function() const { return function_.get(); }

 private:
  std::shared_ptr<PyObject> function_;
};

}  // namespace renga::python

namespace pybind11::detail {

// In Python a tuple of the members.
template <>
struct type_caster<renga::StatisticsGroup> {
  PYBIND11_TYPE_CASTER(renga::StatisticsGroup, const_name("tuple"));
  bool load(handle source, bool convert);
  static handle cast(const renga::StatisticsGroup& ranks, return_value_policy, handle);
};

}  // namespace pybind11::detail
