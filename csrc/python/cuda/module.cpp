// The CUDA plugin: importing it puts the driver and its kernels into the core's tables.
// RENGA_PLUGIN is its name.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <tuple>

#include "devices/cuda/cuda.h"
#include "ops/convolution/cuda/plan.h"

namespace {

using Options = std::tuple<bool, bool, bool, std::int64_t>;

renga::ConvolutionOptions options_from(const Options& options) {
  return std::apply([](auto... members) { return renga::ConvolutionOptions{members...}; }, options);
}

}  // namespace

PYBIND11_MODULE(RENGA_PLUGIN, m) {
  m.doc() = "CUDA devices for the core.";
  pybind11::module_::import("renga._core");
  renga::cuda::require_devices();
  m.def(
      "count",
      [] {
        return renga::driver_of({renga::cuda::number(), 0}).count();
      },
      "How many devices there are.");
  m.def(
      "set_convolution_options",
      [](const std::optional<Options>& options) {
        renga::set_convolution_options(options ? std::optional(options_from(*options))
                                               : std::nullopt);
      },
      pybind11::arg("options"),
      "Sets for this thread whether convolutions use cuDNN, always sum in one order, and use the "
      "engine that was the fastest, and how many bytes more they may use. None: the default.");
  m.def(
      "set_default_convolution_options",
      [](const Options& options) { renga::set_default_convolution_options(options_from(options)); },
      pybind11::arg("options"), "The same, for threads that have set nothing.");
  m.def(
      "set_stream",
      [](std::uintptr_t stream) {
        renga::cuda::set_stream(reinterpret_cast<cudaStream_t>(stream));
      },
      pybind11::arg("stream"), "Sets the stream on which this thread computes; 0: the default.");
  m.def("convolution_plans", &renga::convolution_plans, "How many plans of cuDNN are kept.");
}
