#include <pybind11/stl.h>

#include <string>
#include <utility>

#include "ops/convolution/cpu/selection.h"
#include "ops/matmul/cpu/selection.h"
#include "ops/matmul/precision.h"
#include "ops/normalization/normalization.h"
#include "ops/shape/manipulation.h"
#include "python/array.h"
#include "python/interpreter.h"
#include "python/variable.h"

namespace renga::python {

void bind_kernels(py::module_& m) {
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
  m.def("override_bf16x3", &override_bf16x3, py::arg("faster"),
        "For tests: whether precision 'high' uses bf16x3; None leaves it to the CPU.");
  m.def("override_bfloat16", &override_bfloat16, py::arg("faster"),
        "For tests: whether 'medium' products are of bfloat16; None leaves it to the CPU.");
  m.def(
      "tile_unit", [] { return simd::name_of(simd::tile_unit()); },
      "What multiplies tiles of bfloat16 numbers: 'none', 'portable' or 'amx'.");
  m.def("override_tile_unit", &simd::override_tile_unit, py::arg("name"),
        "For tests: what multiplies tiles; None leaves it to the CPU.");
  m.def(
      "moments",
      [](const Array& x, const Axes& axes) {
        const auto [mean, var] = moments(x, axes);
        return std::pair(to_python(mean), to_python(var));
      },
      py::arg("x"), py::arg("axes"),
      "Means over ascending axes and mean squared differences from them, at least in float32.");
  m.def(
      "as_activation", [](const Variable& x) { return as_activation(x); }, py::arg("x"),
      "What a product takes of x: rounded to bfloat16 where activations are.");
  m.def(
      "in_dtype_of", [](const Variable& y, const Variable& x) { return cast(y, x.dtype()); },
      py::arg("y"), py::arg("x"), "y in the dtype that x has in the core, bfloat16 among them.");
}

}  // namespace renga::python
