// Binds every listed operation by its one list entry.
#include "ops/ops.h"

#include <pybind11/stl.h>

#include "python/calls/around_call.h"
#include "python/calls/operation.h"
#include "python/calls/options.h"
#include "python/calls/ranks.h"
#include "python/range.h"

namespace renga::python {
namespace {

// Whether a function reduces x over axes, which are no list in Chainer; those of normalizations and
// permutations may be one.
template <class... Rest>
constexpr bool reduces(Variable (*)(const Variable&, const std::optional<Axes>&, Rest...)) {
  return true;
}
constexpr bool reduces(...) { return false; }

py::arg python_argument(const Arg& a, bool) { return py::arg(a.name); }
template <class T>
py::arg_v python_argument(const Default<T>& a, bool reduces) {
  return py::arg(a.name).noconvert(reduces && std::string_view(a.name) == "axis") = a.value;
}

// Whether an operation takes plain arrays beside Variables.
template <class Parameter>
constexpr bool is_array = std::is_same_v<std::remove_cvref_t<Parameter>, Array> ||
                          std::is_same_v<std::remove_cvref_t<Parameter>, std::optional<Array>>;
template <class Result, class... Parameters>
constexpr bool takes_arrays(Result (*)(Parameters...)) {
  return (is_array<Parameters> || ...);
}

struct Binder {
  py::module_& ops;
  py::list entries;

  template <class Function, class... Args>
  void operator()(const Op& op, Function function, const Args&... args) {
    const std::string doc = std::string(op.summary) + "\n\nShapes: " + op.shapes;
    ops.def(op.name, surrounded(op.name, function), python_argument(args, reduces(function))...,
            doc.c_str());
    entries.append(Operation{op, py::make_tuple(args.name...), takes_arrays(function)});
  }
};

}  // namespace

void bind_ops(py::module_& m) {
  bind_operation(m);
  py::module_ ops = m.def_submodule("ops", "Every operation of the core.");
  Binder binder{ops, py::list()};
  list_ops(binder);
  ops.attr("entries") = py::tuple(binder.entries);
}

}  // namespace renga::python
