#include <omp.h>
#include <pybind11/stl.h>

#include <string>
#include <thread>
#include <utility>

#include "autograd/engine.h"
#include "devices/allocator.h"
#include "devices/gil_release.h"
#include "devices/meta.h"
#include "ops/matmul/matmul.h"
#include "python/attention.h"
#include "python/calls/around_call.h"
#include "python/calls/call_site.h"
#include "python/compression.h"
#include "python/cuda_array.h"
#include "python/dlpack.h"
#include "python/elements.h"
#include "python/interpreter.h"
#include "python/planning.h"
#include "python/text_signatures.h"
#include "python/variable.h"

namespace renga::python {
namespace {

void raise(const char* module, const char* name, const char* text) {
  py::set_error(py::module_::import(module).attr(name), text);
}

// pybind11 passes it by value.
void translate(std::exception_ptr error) {  // NOLINT(performance-unnecessary-value-param)
  try {
    if (error) std::rethrow_exception(error);
  } catch (const InvalidType& e) {
    raise("renga.utils.type_check", "InvalidType", e.what());
  } catch (const WrongType& e) {
    PyErr_SetString(PyExc_TypeError, e.what());
  } catch (const std::out_of_range& e) {
    raise("renga.utils.type_check", "IndexOutOfRange", e.what());
  } catch (const OutOfMemory& e) {
    PyErr_SetString(PyExc_MemoryError, e.what());
  } catch (const py::cast_error& e) {
    // "Unable to cast Python instance of type <class 'float'> to C++ type …"
    const std::string text = e.what();
    PyErr_SetString(PyExc_TypeError, text.substr(0, text.find(" to C++ type")).c_str());
  }
}

// nullptr where this thread does not hold the GIL.
void* release_gil() { return PyGILState_Check() ? PyEval_SaveThread() : nullptr; }
void acquire_gil(void* state) {
  if (state == nullptr) return;
  wait_for_gil([state] { PyEval_RestoreThread(static_cast<PyThreadState*>(state)); });
}

// oneDNN compiles its matrix kernels at the first product, which takes longer than many training
// steps. Where there is a second core, that happens in a thread during the import of the package.
std::thread* warm_up = nullptr;

void start_warm_up() {
  if (omp_get_num_procs() < 2) return;
  warm_up = new std::thread([] {
    omp_set_num_threads(1);
    try {
      const Array a = zeros({64, 64}, Dtype::float32), c = empty_like(a);
      matmul_kernels.on(Device{}).matmul(a, a, c, {}, nullptr);
    } catch (const std::exception&) {
      return;  // The first product of the program reports it.
    }
  });
}

void finish_warm_up() {
  if (warm_up == nullptr) return;
  warm_up->join();
  delete std::exchange(warm_up, nullptr);
}

void bind_threads(py::module_& m) {
  m.def("get_num_threads", &omp_get_max_threads,
        "Threads that an operation called from this thread may use.");
  m.def(
      "set_num_threads",
      [](int n) {
        require<std::invalid_argument>(n > 0, "set_num_threads: expected at least 1, got ", n);
        omp_set_num_threads(n);
      },
      py::arg("n"), "Sets how many threads an operation called from this thread may use.");
  m.def("finish_warm_up", &finish_warm_up, "Waits for the thread started at import.");
  // Also where the rest of the import fails: at exit, what the thread uses would be destroyed.
  py::module_::import("atexit").attr("register")(m.attr("finish_warm_up"));
}

}  // namespace
}  // namespace renga::python

PYBIND11_MODULE(_core, m) {
  using namespace renga::python;
  m.doc() = "The core of renga: variables, the graph and the operations.";
  m.attr("__version__") = RENGA_VERSION;
  py::register_exception_translator(&translate);
  py::register_exception<renga::NoElements>(m, "NoElements", PyExc_RuntimeError);
  renga::gil_release_hooks = {&release_gil, &acquire_gil};
  start_warm_up();
  bind_graph(m);
  bind_variable(m);
  bind_calls(m);
  bind_elements(m);
  bind_subscripts(m);
  bind_call_sites(m);
  bind_ops(m);
  bind_optimizers(m);
  bind_compression(m);
  bind_attention(m);
  bind_planning(m);
  bind_settings(m);
  bind_threads(m);
  bind_kernels(m);
  bind_memory(m);
  bind_dlpack(m);
  bind_device_arrays(m);
  for (const char* name : {"Variable", "VariableNode", "Node", "NodeLink", "Call"}) {
    refuse_uninitialized(m.attr(name));
  }
  for (const char* name : {"Update", "ScaledStep", "AdamMoments"}) {
    refuse_uninitialized(m.attr("optimizers").attr(name));
  }
  add_text_signatures(m);
}
