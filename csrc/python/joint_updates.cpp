// Finds parameters whose updates differ in their arrays alone, as one call computes them.
#include <algorithm>

#include "python/variable.h"

namespace renga::python {
namespace {

py::dict attributes(py::handle object) {
  PyObject* const found = PyObject_GenericGetDict(object.ptr(), nullptr);
  if (found == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::dict>(found);
}

// Whether two objects are one, or equal numbers or texts, or empty dictionaries. User code, such as
// a comparison of theirs, does not run.
bool are_equal(PyObject* x, PyObject* y) {
  if (x == y) return true;
  if (Py_TYPE(x) != Py_TYPE(y)) return false;
  if (PyDict_CheckExact(x)) return PyDict_GET_SIZE(x) == 0 && PyDict_GET_SIZE(y) == 0;
  return (PyFloat_CheckExact(x) || PyLong_CheckExact(x) || PyUnicode_CheckExact(x)) &&
         PyObject_RichCompareBool(x, y, Py_EQ) == 1;
}

// Whether two objects have the same attributes, in one order; `compare(name, x, y)` decides of
// each.
template <class Compare>
bool have_same_attributes(const py::dict& xs, const py::dict& ys, const Compare& compare) {
  if (xs.size() != ys.size()) return false;
  Py_ssize_t i = 0, j = 0;
  PyObject *name, *other, *x, *y;
  while (PyDict_Next(xs.ptr(), &i, &name, &x) != 0 && PyDict_Next(ys.ptr(), &j, &other, &y) != 0) {
    if (name != other || !compare(name, x, y)) return false;
  }
  return true;
}

// A name that compares by its address; it is never freed.
PyObject* interned(const char* name) {
  PyObject* const made = PyUnicode_InternFromString(name);
  if (made == nullptr) throw py::error_already_set();
  return made;
}

struct Names {
  PyObject *rule = interned("update_rule"), *update = interned("update"), *t = interned("t"),
           *state = interned("_state"), *hyperparam = interned("hyperparam");
};
const Names& names() {
  static const Names made;
  return made;
}

// The parameters of one joint update, of which the first is known to be computed by the core.
struct Group {
  // The lists of its parameters and of their states.
  explicit Group(const py::tuple& lists)
      : params(lists[0]),
        states(lists[1]),
        first(params[0]),
        body(*variable_body(first)),
        rule(first.attr(py::handle(names().rule))),
        own(attributes(rule)),
        t(own[py::handle(names().t)]) {}

  // Adds a parameter and counts its update, if its arrays alone differ from the first one's.
  bool take(py::handle param) {
    if (Py_TYPE(param.ptr()) != Py_TYPE(first.ptr())) return false;
    const VariableBody& x = *variable_body(param);
    const Array& array = x.metadata();
    if (!array.defined() || array.dtype() != body.metadata().dtype() ||
        array.device() != body.metadata().device() || (x.pass && x.pass->loss_scale)) {
      return false;
    }
    if (attributes(param).contains(py::handle(names().update))) return false;
    const py::object its_rule = param.attr(py::handle(names().rule));
    if (Py_TYPE(its_rule.ptr()) != Py_TYPE(rule.ptr())) return false;
    const py::dict its = attributes(its_rule);
    PyObject* state = nullptr;
    const auto compare = [&](PyObject* name, PyObject* x, PyObject* y) {
      if (name == names().state) return PyDict_CheckExact(state = y) != 0;
      if (name == names().t) return is_next(x, y);
      return are_equal(x, y) || (name == names().hyperparam && are_same_values(x, y));
    };
    if (!have_same_attributes(own, its, compare)) return false;
    params.append(param);
    states.append(py::handle(state));
    its[py::handle(names().t)] = t;
    return true;
  }

  // Whether the first parameter, whose update is counted, had this count before it.
  static bool is_next(PyObject* counted, PyObject* count) {
    return PyLong_CheckExact(counted) && PyLong_CheckExact(count) &&
           PyLong_AsLongLong(counted) == PyLong_AsLongLong(count) + 1;
  }

  static bool are_same_values(PyObject* x, PyObject* y) {
    return Py_TYPE(x) == Py_TYPE(y) &&
           have_same_attributes(
               attributes(x), attributes(y),
               [](PyObject*, PyObject* x, PyObject* y) { return are_equal(x, y); });
  }

  py::list params, states;
  py::object first;
  const VariableBody& body;
  py::object rule;
  py::dict own;
  py::object t;
};

py::ssize_t join(const py::list& params, py::ssize_t begin, const py::list& groups) {
  std::vector<Group> open;
  open.reserve(groups.size());
  for (const py::handle lists : groups) open.emplace_back(lists.cast<py::tuple>());
  const auto end = static_cast<py::ssize_t>(params.size());
  for (; begin < end; ++begin) {
    const py::handle param = PyList_GET_ITEM(params.ptr(), begin);
    if (!std::ranges::any_of(open, [&](Group& group) { return group.take(param); })) break;
  }
  return begin;
}

}  // namespace

void bind_joint_updates(py::module_& rules) {
  rules.def("join", &join, py::arg("params"), py::arg("begin"), py::arg("groups"),
            "Adds parameters from the position `begin` on, and their rules' states, to the lists "
            "of the groups whose first parameter is updated alike, and counts their updates. "
            "Returns the position of the first one that is not.");
}

}  // namespace renga::python
