// Variables in Python. The Python object wraps the VariableBody; one body is one Python object.
#pragma once

#include <pybind11/pybind11.h>

#include "autograd/node.h"
#include "python/array.h"

PYBIND11_DECLARE_HOLDER_TYPE(T, renga::Ref<T>, true)

namespace renga::python {

// The variable's array as a numpy.ndarray: the same object until the array is replaced.
py::object python_array(VariableBody& body);

// The array of the gradient, or None. One that repeats elements, as that of a sum does, gets memory
// for each: programs change gradients in place.
py::object python_grad(VariableBody& body);
// Throws InvalidType: functions compute with numbers only.
[[noreturn]] void refuse_dtype(py::handle ndarray);
// The metadata of the variable's array; throws if the variable is uninitialized, or keeps objects.
const Array& known_metadata(const VariableBody& body);
// The Python object of a variable, None for an undefined one.
py::object python_variable(const Variable& x);
// The body that a Python Variable is; nullptr for any other object.
VariableBody* variable_body(py::handle object);

// Makes using an object of this class whose __init__ has not run an error. pybind11 would pass
// uninitialized memory.
void refuse_uninitialized(py::handle type);

void bind_variable(py::module_& m);
// Fills in the type's slots for Python's operators, before the type is ready.
void set_operators(PyHeapTypeObject* variable);
void set_subscript(PyHeapTypeObject* variable);
void bind_subscripts(py::module_& m);
void bind_graph(py::module_& m);
void bind_ops(py::module_& m);
void bind_optimizers(py::module_& m);
void bind_joint_updates(py::module_& rules);
void bind_settings(py::module_& m);
void bind_kernels(py::module_& m);
void bind_memory(py::module_& m);

}  // namespace renga::python

namespace pybind11::detail {

template <>
struct type_caster<renga::Variable> {
  PYBIND11_TYPE_CASTER(renga::Variable,
                       io_name("renga.Variable | numpy.ndarray | float", "renga.Variable"));

  bool load(handle source, bool convert);
  static handle cast(const renga::Variable& x, return_value_policy, handle) {
    return renga::python::python_variable(x).release();
  }
};

}  // namespace pybind11::detail
