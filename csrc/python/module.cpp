#include <omp.h>
#include <pybind11/stl.h>

#include <map>
#include <string>
#include <thread>
#include <utility>

#include "autograd/engine.h"
#include "devices/allocator.h"
#include "devices/gil_release.h"
#include "devices/meta.h"
#include "ops/convolution/algorithm_cache.h"
#include "ops/convolution/cpu/algorithm_selection.h"
#include "ops/matmul/cpu/bfloat16_products.h"
#include "ops/matmul/matmul.h"
#include "ops/matmul/precision.h"
#include "ops/normalization/normalization.h"
#include "ops/shape/manipulation.h"
#include "python/attention.h"
#include "python/calls/call_site.h"
#include "python/calls/hooks.h"
#include "python/compression.h"
#include "python/cuda_array.h"
#include "python/dlpack.h"
#include "python/interpreter.h"
#include "python/planning.h"
#include "python/text_signatures.h"
#include "python/variable.h"
#include "tensor/extents.h"

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

Precision precision_from(const std::string& name) {
  const std::map<std::string, Precision> precisions{
      {"highest", Precision::highest}, {"high", Precision::high}, {"medium", Precision::medium}};
  const auto precision = precisions.find(name);
  require<std::invalid_argument>(precision != precisions.end(),
                                 "compute_precision: expected highest, high or medium, got ", name);
  return precision->second;
}

void bind_precision(py::module_& m) {
  m.def(
      "set_compute_precision",
      [](const std::optional<std::string>& name) {
        set_compute_precision(name ? std::optional(precision_from(*name)) : std::nullopt);
      },
      py::arg("name"), "Sets this thread's compute_precision; None follows the default.");
  m.def(
      "set_default_compute_precision",
      [](const std::string& name) { set_default_compute_precision(precision_from(name)); },
      py::arg("name"));
  m.def("set_bfloat16_activations", &set_bfloat16_activations, py::arg("on"),
        "Whether this thread's activations are bfloat16; None follows the default.");
  m.def("override_bf16x3", &override_bf16x3, py::arg("faster"),
        "For tests: whether precision 'high' uses bf16x3; None leaves it to the CPU.");
  m.def("override_bfloat16", &override_bfloat16, py::arg("faster"),
        "For tests: whether 'medium' products are of bfloat16; None leaves it to the CPU.");
  m.def(
      "tile_unit", [] { return simd::name_of(simd::tile_unit()); },
      "What multiplies tiles of bfloat16 numbers: 'none', 'portable' or 'amx'.");
  m.def("override_tile_unit", &simd::override_tile_unit, py::arg("name"),
        "For tests: what multiplies tiles; None leaves it to the CPU.");
  m.def("freeze_statistics", &freeze_statistics, py::arg("frozen"),
        "Whether this thread's batch normalizations leave running statistics alone.");
  m.def("set_default_bfloat16_activations", &set_default_bfloat16_activations, py::arg("on"));
  m.def("as_activation", &as_activation, py::arg("x"),
        "What a product takes of x: rounded to bfloat16 where activations are.");
  m.def(
      "in_dtype_of", [](const Variable& y, const Variable& x) { return cast(y, x.dtype()); },
      py::arg("y"), py::arg("x"), "y in the dtype that x has in the core, bfloat16 among them.");
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
      matmul_kernels.on(Device{}).matmul(a, a, c, false);
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

}  // namespace

void bind_memory(py::module_& m) {
  m.def(
      "memory_stats",
      [](const std::string& device) {
        const MemoryStats s = memory_stats(device_from_string(device));
        py::dict d;
        d["in_use"] = s.in_use;
        d["peak"] = s.peak;
        d["cached"] = s.cached;
        d["allocations"] = s.allocations;
        d["hits"] = s.hits;
        d["reserves"] = s.reserves;
        return d;
      },
      py::arg("device"));
  m.def(
      "empty_cache", [](const std::string& device) { empty_cache(device_from_string(device)); },
      py::arg("device"));
  m.def(
      "empty",
      [](const Shape& shape, Dtype dtype, const std::string& device) {
        return empty(shape, dtype, device_from_string(device));
      },
      py::arg("shape"), py::arg("dtype"), py::arg("device") = to_string(Device{}),
      "An array in memory of the core's allocator.");
  m.def(
      "require_memory",
      [](const char* op, const Shape& shape, Dtype dtype) { require_memory(op, shape, dtype); },
      py::arg("op"), py::arg("shape"), py::arg("dtype"),
      "Raises ValueError for a negative extent, MemoryError where an array would not fit.");
  m.def(
      "require_writable",
      [](py::handle array, const std::string& what) { writable_array(array, what.c_str()); },
      py::arg("array"), py::arg("what"),
      "Raises ValueError unless the core can write into the memory of an ndarray.");
  m.def("get_num_threads", &omp_get_max_threads,
        "Threads that an operation called from this thread may use.");
  m.def(
      "set_num_threads",
      [](int n) {
        require<std::invalid_argument>(n > 0, "set_num_threads: expected at least 1, got ", n);
        omp_set_num_threads(n);
      },
      py::arg("n"), "Sets how many threads an operation called from this thread may use.");
  m.def("use_convolution_kernel", &use_convolution_algorithm, py::arg("name"),
        "Sets what float32 convolutions run on, in this process, where they can.");
  m.def("kernel_choices", &algorithm_cache, "The kernels chosen so far, by problem.");
  m.def("load_kernel_choices", &load_algorithms, py::arg("choices"),
        "Sets choices that take precedence over those that operations would make.");
  m.def("forget_kernel_choices", &clear_algorithms, "Removes all choices.");
  m.def(
      "observe_kernels",
      [](py::object observer) {
        // Never freed: other threads may still call it while the interpreter is finalized.
        static py::object& callback = *new py::object;
        callback = std::move(observer);
        algorithm_observer = [](const std::string& problem, const std::string& kernel) {
          const GilAcquire interpreter;
          callback(problem, kernel);
        };
      },
      py::arg("observer"), "Calls observer(problem, kernel) for every new choice.");
  m.def("finish_warm_up", &finish_warm_up, "Waits for the thread started at import.");
  // Also where the rest of the import fails: at exit, what the thread uses would be destroyed.
  py::module_::import("atexit").attr("register")(m.attr("finish_warm_up"));
  m.def("host_name", [] { return to_string(Device{}); });
  m.def(
      "device_names",
      [] {
        std::vector<std::string> names;
        for (std::size_t i = 0; i < drivers().size(); ++i) {
          const Driver& driver = *drivers()[i];
          if (i != kMeta.driver && driver.count() > 0) names.push_back(driver.name());
        }
        return names;
      },
      "The kinds of devices with memory, of which there is one at least.");
}

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
  bind_hooks(m);
  bind_placement(m);
  bind_call_sites(m);
  bind_ops(m);
  bind_optimizers(m);
  bind_compression(m);
  bind_attention(m);
  bind_planning(m);
  bind_memory(m);
  bind_dlpack(m);
  bind_device_arrays(m);
  bind_precision(m);
  for (const char* name : {"Variable", "VariableNode", "Node", "NodeLink", "Call"}) {
    refuse_uninitialized(m.attr(name));
  }
  for (const char* name : {"Update", "ScaledStep", "AdamMoments"}) {
    refuse_uninitialized(m.attr("optimizers").attr(name));
  }
  add_text_signatures(m);
}
