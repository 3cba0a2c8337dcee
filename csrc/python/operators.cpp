// Python's operators on variables, with variables, arrays and numbers on either side.
#include "ops/arithmetic.h"
#include "ops/math.h"
#include "ops/matmul.h"
#include "python/hooks.h"

namespace renga::python {
namespace {

using Pair = Variable (*)(const Variable&, const Variable&);

// The other operand: a number, or something to work on element by element.
struct Operand {
  bool known = false;
  bool is_number = false;
  double number = 0;
  Variable variable;
};

Operand operand(const VariableBody& self, py::handle other) {
  Operand o;
  PyObject* p = other.ptr();
  if (PyFloat_Check(p) || PyLong_Check(p)) {
    o.known = o.is_number = true;
    o.number = PyFloat_AsDouble(p);
    if (o.number == -1 && PyErr_Occurred()) throw py::error_already_set();
  } else if (VariableBody* body = variable_body(other)) {
    o.known = true;
    o.variable = Variable(Ref<VariableBody>(body));
  } else if (is_ndarray(other)) {
    // Arrays follow the variable's dtype, as numbers do.
    o.known = true;
    o.variable = Variable(cast(from_numpy(other), self.array().dtype()));
  } else if (py::hasattr(other, "dtype") && PyNumber_Check(p)) {
    o.known = o.is_number = true;
    o.number = other.attr("__float__")().cast<double>();
  }
  return o;
}

Variable initialized(VariableBody& body) {
  known_array(body);
  return Variable(Ref<VariableBody>(&body));
}

// Its name, and whether the variable stands on the right.
struct Operator {
  const char* label;
  bool reflected = false;
};

template <class WithVariable, class WithNumber>
py::object apply(const Operator& op, VariableBody& self, py::handle other, WithVariable variable,
                 WithNumber number) {
  const Variable x = initialized(self);
  const Operand o = operand(self, other);
  if (!o.known) return py::reinterpret_borrow<py::object>(Py_NotImplemented);
  if (o.variable.defined()) known_array(*o.variable.body());
  const auto compute = [&] { return o.is_number ? number(x, o.number) : variable(x, o.variable); };
  if (function_hooks == nullptr) [[likely]]
    return python_variable(compute());
  const py::object with = o.is_number ? py::cast(o.number) : python_variable(o.variable);
  const py::object mine = python_variable(x);
  const HookedCall call(op.label, o.is_number ? std::vector{x} : std::vector{x, o.variable},
                        op.reflected ? py::make_tuple(with, mine) : py::make_tuple(mine, with));
  const Variable y = compute();
  call.done({y});
  return python_variable(y);
}

template <class WithVariable, class WithNumber>
auto method(const Operator& op, WithVariable variable, WithNumber number) {
  return [=](VariableBody& self, py::handle other) {
    return apply(op, self, other, variable, number);
  };
}

// The same with the operands exchanged.
auto swapped(Pair f) {
  return [f](const Variable& x, const Variable& y) { return f(y, x); };
}

}  // namespace

void bind_operators(py::class_<VariableBody, Ref<VariableBody>>& c) {
  const Pair plus = &add, times = &multiply, minus = &subtract, over = &divide;
  const Pair to_the = &power, floor_over = &floor_divide;
  const auto plus_number = [](const Variable& x, double n) { return add(x, n); };
  const auto times_number = [](const Variable& x, double n) { return multiply(x, n); };
  c.def("__add__", method({"_ + _"}, plus, plus_number));
  c.def("__radd__", method({"_ + _", true}, swapped(plus), plus_number));
  c.def("__sub__",
        method({"_ - _"}, minus, [](const Variable& x, double n) { return add(x, -n); }));
  c.def("__rsub__", method({"_ - _", true}, swapped(minus),
                           [](const Variable& x, double n) { return subtract_from(n, x); }));
  c.def("__mul__", method({"_ * _"}, times, times_number));
  c.def("__rmul__", method({"_ * _", true}, swapped(times), times_number));
  c.def("__truediv__",
        method({"_ / _"}, over, [](const Variable& x, double n) { return multiply(x, 1 / n); }));
  c.def("__rtruediv__", method({"_ / _", true}, swapped(over),
                               [](const Variable& x, double n) { return divide_into(n, x); }));
  c.def("__floordiv__", method({"_ // _"}, floor_over,
                               [](const Variable& x, double n) { return floor_divide(x, n); }));
  c.def("__rfloordiv__",
        method({"_ // _", true}, swapped(floor_over),
               [](const Variable& x, double n) { return floor_divide_into(n, x); }));
  c.def("__pow__",
        method({"_ ** _"}, to_the, [](const Variable& x, double n) { return power(x, n); }));
  c.def("__rpow__", method({"_ ** _", true}, swapped(to_the),
                           [](const Variable& x, double n) { return power_of(n, x); }));
  const auto no_number = [](const Variable&, double) -> Variable {
    throw py::type_error("matmul: expected arrays, got a number");
  };
  const Pair product = [](const Variable& a, const Variable& b) { return matmul(a, b); };
  c.def("__matmul__", method({"MatMul"}, product, no_number));
  c.def("__rmatmul__", method({"MatMul", true}, swapped(product), no_number));
  c.def("__neg__",
        [minus = hooked("negative", &negative)](VariableBody& x) { return minus(initialized(x)); });
  c.def("__abs__",
        [size = hooked("absolute", &absolute)](VariableBody& x) { return size(initialized(x)); });
  // NumPy leaves operators with a Variable on the right to the Variable.
  c.attr("__array_ufunc__") = py::none();
  c.attr("__array_priority__") = 200;
}

}  // namespace renga::python
