#include "python/argument_errors.h"

#include <pybind11/pybind11.h>

#include <sstream>
#include <string>

namespace py = pybind11;

namespace renga::python {
namespace {

using FastCall = PyObject* (*)(PyObject*, PyObject* const*, Py_ssize_t, PyObject*);

// pybind11's, which is that of each bound function.
FastCall dispatch = nullptr;

std::string text_of(PyObject* argument) {
  const py::handle x = argument;
  const std::string kind = Py_TYPE(argument)->tp_name;
  try {
    if (py::hasattr(x, "shape") && py::hasattr(x, "dtype")) {
      return kind + " of " + py::str(x.attr("dtype")).cast<std::string>() + " " +
             py::str(x.attr("shape")).cast<std::string>();
    }
    const std::string text = py::repr(x).cast<std::string>();
    return text.size() < 60 ? text : kind;
  } catch (const py::error_already_set&) {  // such as an object before its __init__
    return kind;
  }
}

std::string text_of(PyObject* const* arguments, Py_ssize_t positional, PyObject* names) {
  const Py_ssize_t named = names == nullptr ? 0 : PyTuple_GET_SIZE(names);
  std::string text;
  for (Py_ssize_t i = 0; i < positional + named; ++i) {
    if (i > 0) text += ", ";
    if (i >= positional) {
      text += py::str(PyTuple_GET_ITEM(names, i - positional)).cast<std::string>() + "=";
    }
    text += text_of(arguments[i]);
  }
  return text;
}

// "(x: A, axis: int = 1)" of each signature, from lines "    1. (x: A, axis: int = 1) -> A", or of
// constructors "    1. module.Class(x: A)".
std::string signatures_of(const std::string& message) {
  std::string text, line;
  for (std::istringstream lines(message); std::getline(lines, line);) {
    const auto begin = line.find('('), end = line.rfind(") -> ");
    const auto last = end == std::string::npos ? line.rfind(')') : end;
    if (line.find(". ") >= begin || last == std::string::npos) continue;
    text += (text.empty() ? "" : " or ") + line.substr(begin, last - begin + 1);
  }
  return text;
}

// In place of pybind11's message, which prints all elements of arrays.
void explain(PyObject* const* arguments, Py_ssize_t positional, PyObject* names) {
  py::error_already_set error;
  const std::string message = py::str(error.value()).cast<std::string>();
  const auto end_of_name = message.find("(): incompatible ");
  const auto end_of_signatures = message.find("\n\nInvoked with: ");
  if (end_of_name == std::string::npos || end_of_signatures == std::string::npos) {
    error.restore();
    return;
  }
  PyErr_SetString(PyExc_TypeError, (message.substr(0, end_of_name) + ": expected " +
                                    signatures_of(message.substr(0, end_of_signatures)) +
                                    ", got (" + text_of(arguments, positional, names) + ")")
                                       .c_str());
}

PyObject* call(PyObject* self, PyObject* const* arguments, Py_ssize_t positional, PyObject* names) {
  PyObject* result = dispatch(self, arguments, positional, names);
  if (result == nullptr && PyErr_ExceptionMatches(PyExc_TypeError)) {
    try {
      explain(arguments, positional, names);
    } catch (py::error_already_set& error) {
      error.restore();
    }
  }
  return result;
}

template <class To, class From>
To function_cast(From function) {
  return reinterpret_cast<To>(reinterpret_cast<void (*)()>(function));
}

}  // namespace

void explain_wrong_arguments(PyMethodDef* function) {
  if (function->ml_flags != (METH_FASTCALL | METH_KEYWORDS)) return;
  const auto bound = function_cast<FastCall>(function->ml_meth);
  if (bound == call) return;
  if (dispatch == nullptr) dispatch = bound;
  if (bound == dispatch) function->ml_meth = function_cast<PyCFunction>(call);
}

}  // namespace renga::python
