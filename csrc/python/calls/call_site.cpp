#include "python/calls/call_site.h"

#include <pybind11/stl.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "autograd/node.h"
#include "python/interpreter.h"

namespace renga::python {
namespace {

namespace py = pybind11;

// Never freed: operations may be called while the interpreter exits.
std::vector<std::string>* package_folders = nullptr;

// The code object and the instruction offset; formatted only when an error needs it.
class PythonCallSite final : public CallSite {
 public:
  PythonCallSite(PyCodeObject* code, int at) : code_(code), at_(at) {}
  ~PythonCallSite() override { release(reinterpret_cast<PyObject*>(code_)); }
  std::string describe() const override {
    const GilAcquire lock;
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
  const std::string_view path(file, static_cast<std::size_t>(length));
  return std::any_of(package_folders->begin(), package_folders->end(),
                     [path](const std::string& folder) { return path.starts_with(folder); });
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

void bind_call_sites(py::module_& m) {
  m.def(
      "install_call_sites",
      [](std::vector<std::string> folders) {
        delete package_folders;
        package_folders = new std::vector<std::string>(std::move(folders));
        find_call_site = &find;
      },
      py::arg("folders"), "Nodes record who called them: the innermost frame outside the folders.");
}

}  // namespace renga::python
