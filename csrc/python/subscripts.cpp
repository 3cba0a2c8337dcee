// x[keys] of Variables. Integers, slices, None and ... give views by operations of the core; what
// has other keys is computed by a function of Python.
#include "ops/shape/manipulation.h"
#include "python/calls/around_call.h"
#include "python/range.h"

namespace renga::python {
namespace {

// The function of Python that gets x and keys; never released, as the interpreter's end is not
// ordered with it.
PyObject* picking = nullptr;
// Derived classes may have another shape, as parameters of which a rank has a shard.
PyTypeObject* subscripted_type = nullptr;

struct Subscript {
  std::vector<renga::Range> ranges;
  Shape shape;
};

bool is_basic(py::handle key) {
  return PyLong_CheckExact(key.ptr()) || PySlice_Check(key.ptr()) || key.is_none() ||
         key.ptr() == Py_Ellipsis;
}

void keep(Subscript& subscript, std::int64_t n) {
  subscript.ranges.push_back({0, n, 1});
  subscript.shape.push_back(n);
}

[[noreturn]] void refuse_count(int ndim, const py::tuple& keys) {
  fail<std::out_of_range>("get_item: expected at most ", ndim, " indices and one ..., got ",
                          py::str(keys).cast<std::string>());
}

void add_slice(Subscript& subscript, py::handle key, std::int64_t n) {
  Py_ssize_t start = 0, stop = 0, step = 0;
  if (PySlice_Unpack(key.ptr(), &start, &stop, &step) < 0) throw py::error_already_set();
  const std::int64_t length = PySlice_AdjustIndices(n, &start, &stop, step);
  // An unused step may be too large.
  subscript.ranges.push_back({start, length, length > 1 ? step : 1});
  subscript.shape.push_back(length);
}

void add_integer(Subscript& subscript, py::handle key, int axis, const Shape& extents) {
  int overflow = 0;
  const std::int64_t n = extents[axis], i = PyLong_AsLongLongAndOverflow(key.ptr(), &overflow);
  if (overflow != 0 || i < -n || i >= n) {
    fail<std::out_of_range>("get_item: expected an index of axis ", axis, " of ", extents, ", got ",
                            py::str(key).cast<std::string>());
  }
  subscript.ranges.push_back({i < 0 ? i + n : i, 1, 1});
}

Subscript parse(const Shape& extents, const py::tuple& keys) {
  int indexed = 0, ellipses = 0;
  for (const py::handle key : keys) {
    ellipses += key.ptr() == Py_Ellipsis;
    indexed += key.ptr() != Py_Ellipsis && !key.is_none();
  }
  if (ellipses > 1 || indexed > extents.size()) refuse_count(extents.size(), keys);
  Subscript subscript;
  subscript.ranges.reserve(static_cast<std::size_t>(extents.size()));
  const auto next_axis = [&] { return static_cast<int>(subscript.ranges.size()); };
  for (const py::handle key : keys) {
    const int axis = next_axis();
    if (key.is_none()) {
      subscript.shape.push_back(1);
    } else if (key.ptr() == Py_Ellipsis) {
      for (int k = 0; k < extents.size() - indexed; ++k) keep(subscript, extents[axis + k]);
    } else if (PySlice_Check(key.ptr())) {
      add_slice(subscript, key, extents[axis]);
    } else {
      add_integer(subscript, key, axis, extents);
    }
  }
  while (next_axis() < extents.size()) keep(subscript, extents[next_axis()]);
  return subscript;
}

// x[keys], or an undefined Variable if one of the keys is neither an integer, a slice, None nor
// ....
Variable basic_item(const Variable& x, const py::object& given, const Shape& extents) {
  static const auto slice_of = surrounded("slice", &slice);
  static const auto reshaped = surrounded("reshape", &reshape);
  const py::tuple keys =
      PyTuple_Check(given.ptr()) ? py::reinterpret_borrow<py::tuple>(given) : py::make_tuple(given);
  for (const py::handle key : keys) {
    if (!is_basic(key)) return Variable();
  }
  const Subscript subscript = parse(extents, keys);
  const Variable y = slice_of(x, subscript.ranges);
  // Integers and None change the axes.
  return y.shape() == subscript.shape ? y : reshaped(y, subscript.shape);
}

Variable basic_item_of(VariableBody& body, PyObject* keys) {
  try {
    known_metadata(body);
    const Variable x{Ref<VariableBody>(&body)};
    return basic_item(x, py::reinterpret_borrow<py::object>(keys), x.shape());
  } catch (const InvalidType&) {
    return Variable();  // it has no numbers
  }
}

PyObject* item(PyObject* self, PyObject* keys) noexcept {
  try {
    if (Py_TYPE(self) == subscripted_type) {
      const Variable y = basic_item_of(*variable_body(self), keys);
      if (y.defined()) return python_variable(y).release().ptr();
    }
    return py::handle(picking)(py::handle(self), py::handle(keys)).release().ptr();
  } catch (...) {
    py::detail::try_translate_exceptions();
    return nullptr;
  }
}

PyObject* item_at(PyObject* self, Py_ssize_t i) noexcept {
  const auto key = py::reinterpret_steal<py::object>(PyLong_FromSsize_t(i));
  return key ? item(self, key.ptr()) : nullptr;
}

}  // namespace

void set_subscript(PyHeapTypeObject* variable) {
  subscripted_type = &variable->ht_type;
  variable->as_mapping.mp_subscript = &item;
  variable->as_sequence.sq_item = &item_at;
}

void bind_subscripts(py::module_& m) {
  m.def("basic_item", &basic_item, py::arg("x"), py::arg("keys"), py::arg("shape"),
        "x[keys], of the shape that is given, if all keys are integers, slices, None and ..., else "
        "None.");
  m.def(
      "set_picking",
      [](const py::object& function) { picking = py::object(function).release().ptr(); },
      py::arg("function"), "Sets what computes x[keys] for other keys, from x and the keys.");
}

}  // namespace renga::python
