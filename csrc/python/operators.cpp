// Python's operators on variables, with variables, arrays and numbers on either side. They are the
// type's slots and not methods bound by pybind11, which would take longer to call than a small
// operation takes to compute.
#include <limits>
#include <optional>
#include <utility>

#include "ops/elementwise/arithmetic.h"
#include "ops/elementwise/math.h"
#include "ops/matmul/matmul.h"
#include "ops/reduction/reduction.h"
#include "ops/shape/manipulation.h"
#include "python/calls/around_call.h"

namespace renga::python {
namespace {

// The other operand: a number, or something to work on element by element.
struct Operand {
  bool known = false;
  bool is_number = false;
  double number = 0;
  Variable variable;
};

void warn(const char* text) {
  if (PyErr_WarnEx(PyExc_RuntimeWarning, text, 1) < 0) throw py::error_already_set();
}

bool is_integer(Dtype dtype) { return !is_float(dtype) && dtype != Dtype::bool_; }

// Python's and NumPy's real numbers.
bool is_number(py::handle object) {
  if (PyFloat_Check(object.ptr()) || PyLong_Check(object.ptr())) return true;
  if (!PyNumber_Check(object.ptr()) || !py::hasattr(object, "dtype")) return false;
  const auto kind = object.attr("dtype").attr("kind").cast<std::string>();
  return kind == "b" || kind == "i" || kind == "u" || kind == "f";
}

// A Python int as a C++ one; none where it is out of range.
template <class T>
std::optional<T> integer_of(py::handle whole) {
  if constexpr (std::is_same_v<T, std::uint64_t>) {
    const T value = PyLong_AsUnsignedLongLong(whole.ptr());
    if (!PyErr_Occurred()) return value;
    PyErr_Clear();
  } else {
    int overflow = 0;
    const long long value = PyLong_AsLongLongAndOverflow(whole.ptr(), &overflow);
    if (overflow == 0 && std::in_range<T>(value)) return T(value);
  }
  return std::nullopt;
}

// A number as a Variable without axes of an integer dtype, never by way of a float. Fractions are
// cut off, as Chainer does, with a warning.
Variable as_integer(py::handle number, Dtype dtype, Device device) {
  PyObject* p = number.ptr();
  const auto whole =
      py::reinterpret_steal<py::object>(PyIndex_Check(p) ? PyNumber_Index(p) : PyNumber_Long(p));
  if (!whole) throw py::error_already_set();
  if (!whole.equal(number)) {
    warn(("the fraction of " + py::str(number).cast<std::string>() +
          " is cut off for a Variable of " + std::string(name_of(dtype)))
             .c_str());
  }
  const Array x = empty({}, dtype);
  visit_dtype(dtype, [&]<class T>(Type<T>) {
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
      const auto value = integer_of<T>(whole);
      if (!value) {
        PyErr_Format(PyExc_OverflowError, "Python integer %R out of bounds for %s", whole.ptr(),
                     std::string(name_of(dtype)).c_str());
        throw py::error_already_set();
      }
      *x.as<T>() = *value;
    }
  });
  return Variable(to_device(x, device));
}

double extreme(Reduction map, const Array& x) {
  Axes all;
  for (int i = 0; i < x.ndim(); ++i) all.push_back(i);
  return item(reduce(map, x, all));
}

// Whether `given`, which is not empty, has numbers that its cast `x` has not.
bool changed(const Array& given, const Array& x) {
  if (is_float(given.dtype())) {
    const Array back = cast(x, given.dtype());
    const Array lost = apply("cast", Binary::subtract, given, back);
    return extreme(Reduction::max, apply(Unary::absolute, lost)) != 0;
  }
  return visit_dtype(x.dtype(), [&]<class T>(Type<T>) {
    if constexpr (std::is_integral_v<T>) {
      using Limits = std::numeric_limits<T>;
      return extreme(Reduction::min, given) < static_cast<double>(Limits::lowest()) ||
             extreme(Reduction::max, given) > static_cast<double>(Limits::max());
    }
    return false;
  });
}

// An array in an integer dtype, with a warning where that changes its numbers.
Variable as_integers(const Array& given, Dtype dtype) {
  const Array x = cast(given, dtype);
  if (given.dtype() != dtype && given.dtype() != Dtype::bool_ && given.size() > 0 &&
      changed(given, x)) {
    warn(("numbers of " + std::string(name_of(given.dtype())) + " change in a Variable of " +
          std::string(name_of(dtype)))
             .c_str());
  }
  return Variable(x);
}

// `other` for an operation with a Variable of `dtype`, which arrays and numbers follow; numbers are
// put on its device, too.
Operand operand(Dtype dtype, Device device, py::handle other) {
  Operand o;
  PyObject* p = other.ptr();
  if (is_float(dtype) && (PyFloat_Check(p) || PyLong_Check(p))) [[likely]] {
    o.known = o.is_number = true;
    o.number = PyFloat_AsDouble(p);
    if (o.number == -1 && PyErr_Occurred()) throw py::error_already_set();
  } else if (VariableBody* body = variable_body(other)) {
    o.known = true;
    o.variable = Variable(Ref<VariableBody>(body));
  } else if (is_array(other)) {
    o.known = true;
    const Array x = from_python(other);
    o.variable = is_integer(dtype) ? as_integers(x, dtype) : Variable(cast(x, dtype));
  } else if (is_number(other)) {
    o.known = true;
    if (is_integer(dtype)) {
      o.variable = as_integer(other, dtype, device);
    } else {
      o.is_number = true;
      o.number = other.attr("__float__")().cast<double>();
    }
  }
  return o;
}

Variable initialized(VariableBody& body) {
  known_metadata(body);
  return Variable(Ref<VariableBody>(&body));
}

// A binary operator: its label, and what computes it for a variable with a variable, with a number
// on the right, and with a number on the left.
struct Operator {
  const char* label;
  Variable (*pair)(const Variable&, const Variable&);
  Variable (*with_number)(const Variable&, double);
  Variable (*of_number)(const Variable&, double);
};

Variable product_with_number(const Variable&, double) {
  throw py::type_error("matmul: expected arrays, got a number");
}

constexpr Operator plus{"_ + _", &add, &add, &add};
constexpr Operator minus{"_ - _", &subtract, [](const Variable& x, double n) { return add(x, -n); },
                         [](const Variable& x, double n) { return subtract_from(n, x); }};
constexpr Operator times{"_ * _", &multiply, &multiply, &multiply};
constexpr Operator over{"_ / _", &divide,
                        [](const Variable& x, double n) { return multiply(x, 1 / n); },
                        [](const Variable& x, double n) { return divide_into(n, x); }};
constexpr Operator floor_over{"_ // _", &floor_divide, &floor_divide,
                              [](const Variable& x, double n) { return floor_divide_into(n, x); }};
constexpr Operator to_the{"_ ** _", &power, &power,
                          [](const Variable& x, double n) { return power_of(n, x); }};
constexpr Operator product{"MatMul",
                           [](const Variable& a, const Variable& b) { return matmul(a, b); },
                           &product_with_number, &product_with_number};

Variable compute(const Operator& op, const Variable& x, const Operand& o, bool reflected) {
  if (o.is_number) return (reflected ? op.of_number : op.with_number)(x, o.number);
  return reflected ? op.pair(o.variable, x) : op.pair(x, o.variable);
}

// Within this thread's context.
Variable compute_surrounded(const Operator& op, const Variable& x, const Operand& o,
                            bool reflected) {
  if (!o.is_number) {
    return reflected ? call_surrounded<Variable>(op.label, op.pair, o.variable, x)
                     : call_surrounded<Variable>(op.label, op.pair, x, o.variable);
  }
  if (!reflected) return call_surrounded<Variable>(op.label, op.with_number, x, o.number);
  const auto of_number = [&op](double n, const Variable& given) { return op.of_number(given, n); };
  return call_surrounded<Variable>(op.label, of_number, o.number, x);
}

// The operator on `self` and `other`; `reflected` says that self stands on the right.
py::object apply(const Operator& op, VariableBody& self, py::handle other, bool reflected) {
  Variable x = initialized(self);
  // True division of integers is float64's; operands that are Variables `divide` sees itself.
  const bool divides_integers =
      op.pair == over.pair && is_integer(x.dtype()) && variable_body(other) == nullptr;
  if (divides_integers) x = cast(x, Dtype::float64);
  Operand o = operand(x.dtype(), x.device(), other);
  if (divides_integers && o.is_number) {  // not by way of the reciprocal, which is rounded
    o.is_number = false;
    o.variable = Variable(full({}, o.number, Dtype::float64, x.device()));
  }
  if (!o.known) return py::reinterpret_borrow<py::object>(Py_NotImplemented);
  if (o.variable.defined()) known_metadata(*o.variable.body());
  if (!is_surrounded()) [[likely]]
    return python_variable(compute(op, x, o, reflected));
  return python_variable(compute_surrounded(op, x, o, reflected));
}

// Returns what `compute` returns as a new reference, or nullptr with Python's error set.
template <class Compute>
PyObject* result_of(const Compute& compute) noexcept {
  try {
    return compute().release().ptr();
  } catch (...) {
    py::detail::try_translate_exceptions();
    return nullptr;
  }
}

// Python calls a slot with both operands in their order, of which at least one is a Variable.
template <const Operator& op>
PyObject* binary(PyObject* left, PyObject* right) noexcept {
  return result_of([&] {
    if (VariableBody* self = variable_body(left)) return apply(op, *self, right, false);
    return apply(op, *variable_body(right), left, true);
  });
}

PyObject* raised(PyObject* left, PyObject* right, PyObject* modulus) noexcept {
  if (modulus != Py_None) Py_RETURN_NOTIMPLEMENTED;
  return binary<to_the>(left, right);
}

PyObject* negated(PyObject* x) noexcept {
  static const auto run = surrounded("negative", &negative);
  return result_of([&] { return python_variable(run(initialized(*variable_body(x)))); });
}

PyObject* magnitude(PyObject* x) noexcept {
  static const auto run = surrounded("absolute", &absolute);
  return result_of([&] { return python_variable(run(initialized(*variable_body(x)))); });
}

}  // namespace

void set_operators(PyHeapTypeObject* variable) {
  arithmetic_warning = &warn;
  PyNumberMethods& slots = variable->as_number;
  slots.nb_add = &binary<plus>;
  slots.nb_subtract = &binary<minus>;
  slots.nb_multiply = &binary<times>;
  slots.nb_true_divide = &binary<over>;
  slots.nb_floor_divide = &binary<floor_over>;
  slots.nb_power = &raised;
  slots.nb_matrix_multiply = &binary<product>;
  slots.nb_negative = &negated;
  slots.nb_absolute = &magnitude;
}

}  // namespace renga::python
