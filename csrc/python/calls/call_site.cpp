#include "python/calls/call_site.h"

#include <pybind11/pybind11.h>

#include <string_view>

#include "autograd/node.h"
#include "python/interpreter.h"

namespace renga::python {
namespace {

namespace py = pybind11;

std::string* package_folder = nullptr;

// The code object and the instruction offset; formatted only when an error needs it.
class PythonCallSite final : public CallSite {
 public:
  PythonCallSite(PyCodeObject* code, int at) : code_(code), at_(at) {}
  ~PythonCallSite() override { release(reinterpret_cast<PyObject*>(code_)); }
  std::string describe() const override {
    const py::gil_scoped_acquire lock;
    const auto file = py::reinterpret_borrow<py::object>(code_->co_filename).cast<std::string>();
    const auto name = py::reinterpret_borrow<py::object>(code_->co_name).cast<std::string>();
    return file + ":" + std::to_string(PyCode_Addr2Line(code_, at_)) + " in " + name;
  }

 private:
  PyCodeObject* code_;
  int at_;
};

bool is_ours(PyCodeObject* code) {
  Py_ssize_t length = 0;
  const char* file = PyUnicode_AsUTF8AndSize(code->co_filename, &length);
  if (file == nullptr) {
    PyErr_Clear();
    return false;
  }
  return std::string_view(file, static_cast<std::size_t>(length)).starts_with(*package_folder);
}

std::unique_ptr<CallSite> find() {
  if (!PyGILState_Check()) return nullptr;
  auto frame = py::reinterpret_borrow<py::object>(reinterpret_cast<PyObject*>(PyEval_GetFrame()));
  while (frame) {
    auto* f = reinterpret_cast<PyFrameObject*>(frame.ptr());
    PyCodeObject* code = PyFrame_GetCode(f);
    if (!is_ours(code)) {
#if PY_VERSION_HEX >= 0x030B0000
      return std::make_unique<PythonCallSite>(code, PyFrame_GetLasti(f));
#else
      return std::make_unique<PythonCallSite>(code, py::handle(frame).attr("f_lasti").cast<int>());
#endif
    }
    Py_DECREF(code);
    frame = py::reinterpret_steal<py::object>(reinterpret_cast<PyObject*>(PyFrame_GetBack(f)));
  }
  return nullptr;
}

}  // namespace

void install_call_sites(const std::string& package) {
  package_folder = new std::string(package);
  find_call_site = &find;
}

}  // namespace renga::python
