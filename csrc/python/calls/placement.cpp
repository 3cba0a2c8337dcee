#include "python/calls/placement.h"

#include <pybind11/stl.h>

#include "python/interpreter.h"
#include "tensor/views.h"

namespace renga::python {
namespace {

// Keeps what an engine needs to know: whether a gradient is wanted.
Variable shape_of(const Variable& x) {
  if (x.device().is_meta()) return x;
  return Variable(to_device(x.metadata(), kMeta), x.requires_grad());
}

py::list list_of(const std::vector<Variable>& xs) {
  py::list list(xs.size());
  for (std::size_t i = 0; i < xs.size(); ++i) list[i] = python_variable(xs[i]);
  return list;
}

void set_call_placement(std::optional<py::object> placement) {
  static thread_local ThreadReference kept;
  if (placement && placement->ptr() == default_call_placement) placement.reset();
  call_placement = placement ? placement->ptr() : nullptr;
  kept.set(placement ? *placement : py::object());
}

void set_default_call_placement(const std::optional<py::object>& placement) {
  PyObject* const before = default_call_placement;
  default_call_placement = placement ? py::object(*placement).release().ptr() : nullptr;
  Py_XDECREF(before);
}

}  // namespace

PlacedCall::PlacedCall(const char* label, const std::vector<Variable>& xs) {
  const py::object placed = py::handle(present_call_placement()).attr("place")(label, list_of(xs));
  if (placed.is_none()) return;
  xs_ = placed.cast<std::vector<Variable>>();
  require<std::runtime_error>(xs_->size() == xs.size(), label, ": expected ", xs.size(),
                              " placed variables, got ", xs_->size());
}

void PlacedCall::done(const std::vector<Variable>& ys) const {
  py::handle(present_call_placement()).attr("placed")(list_of(ys));
}

Variable PlacedCall::operator()(const Variable& x) { return xs_ ? (*xs_)[next_++] : shape_of(x); }

std::vector<Variable> PlacedCall::operator()(const std::vector<Variable>& xs) {
  std::vector<Variable> all;
  for (const Variable& x : xs) all.push_back((*this)(x));
  return all;
}

Array PlacedCall::operator()(const Array& x) const {
  return is_computed() || !x.defined() ? x : to_device(x, kMeta);
}

void bind_placement(py::module_& m) {
  m.def("set_call_placement", &set_call_placement, py::arg("placement"),
        "Has placement.place(label, variables) called before each operation of this thread and "
        "placement.placed(outputs) after it. place returns the variables to compute with, or None "
        "to compute only the outputs' shapes. None for no placement.");
  m.def("set_default_call_placement", &set_default_call_placement, py::arg("placement"),
        "Has this placement asked in threads that have none; None for no placement.");
  m.def(
      "call_placement",
      [] {
        PyObject* const present = present_call_placement();
        return py::reinterpret_borrow<py::object>(present ? present : Py_None);
      },
      "The placement that this thread asks; None if it asks none.");
  m.def(
      "in_memory_order",
      [](const Variable& x) {
        const Axes order = memory_order(x.array());
        return std::pair(order, Variable(transpose_view(x.array(), order)));
      },
      py::arg("x"),
      "The axes from the outermost in memory to the innermost, and a view in this order.");
  m.def(
      "from_memory_order",
      [](const Variable& x, const Shape& shape, const Axes& order) {
        Shape in_memory;
        Axes inverse = order;
        for (int i = 0; i < order.size(); ++i) {
          in_memory.push_back(shape[static_cast<int>(order[i])]);
          inverse[static_cast<int>(order[i])] = i;
        }
        return Variable(transpose_view(reshape_view(x.array(), in_memory), inverse));
      },
      py::arg("x"), py::arg("shape"), py::arg("order"),
      "A view of shape `shape` of elements that have the order of in_memory_order.");
  m.def(
      "dtype_name", [](const Variable& x) { return std::string(name_of(x.dtype())); }, py::arg("x"),
      "The name of the dtype; bfloat16 arrays are float32 in Python.");
  m.def(
      "empty_variable",
      [](const Shape& shape, const std::string& dtype, const std::string& device,
         bool requires_grad) {
        const auto type = dtype_named(dtype);
        require<std::invalid_argument>(type.has_value(), "empty_variable: expected a dtype, got ",
                                       dtype);
        return Variable(empty(shape, *type, device_from_string(device)), requires_grad);
      },
      py::arg("shape"), py::arg("dtype"), py::arg("device"), py::arg("requires_grad") = false,
      "A leaf that is not initialized.");
}

}  // namespace renga::python
