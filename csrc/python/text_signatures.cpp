#include "python/text_signatures.h"

#include <cstdlib>
#include <string>

#include "python/argument_errors.h"

namespace py = pybind11;

namespace renga::python {
namespace {

// "name(x: A | B, axis: int = 1" as "name(x, axis=1": inspect refuses annotations here.
std::string without_annotations(const std::string& declaration) {
  std::string text;
  int depth = 0;
  bool skips = false;
  for (const char c : declaration) {
    depth += (c == '(' || c == '[') - (c == ')' || c == ']');
    if (depth == 1 && c == ':') skips = true;
    if (depth == 1 && (c == ',' || c == '=')) skips = false;
    if (!skips) text += c;
  }
  return text;
}

// CPython takes "name(x, axis=1)\n--\n\n" in front of a docstring for the signature. pybind11's own
// first line is "name(x: Variable, axis: int = 1) -> Variable".
void add_text_signature(PyObject* function) {
  PyMethodDef* definition = reinterpret_cast<PyCFunctionObject*>(function)->m_ml;
  explain_wrong_arguments(definition);
  if (definition->ml_doc == nullptr) return;
  const std::string doc = definition->ml_doc;
  const auto end = doc.substr(0, doc.find('\n')).find(") -> ");
  if (end == std::string::npos || doc.find("\n--\n\n") != std::string::npos) return;
  const std::string text = without_annotations(doc.substr(0, end)) + ")\n--\n\n" + doc;
  // pybind11 frees the docstring with the function.
  std::free(const_cast<char*>(definition->ml_doc));
  definition->ml_doc = strdup(text.c_str());
}

}  // namespace

void add_text_signatures(const py::module_& module) {
  for (const auto& [name, value] : module.attr("__dict__").cast<py::dict>()) {
    if (PyCFunction_Check(value.ptr())) {
      add_text_signature(value.ptr());
    } else if (py::isinstance<py::module_>(value)) {
      add_text_signatures(value.cast<py::module_>());
    } else if (PyType_Check(value.ptr())) {
      const py::dict members = value.attr("__dict__").attr("copy")();
      for (const auto& [member, method] : members) {
        if (PyInstanceMethod_Check(method.ptr())) {
          add_text_signature(PyInstanceMethod_GET_FUNCTION(method.ptr()));
        }
      }
    }
  }
}

}  // namespace renga::python
