// The CUDA plugin: importing it puts the driver and its kernels into the core's tables.
// RENGA_PLUGIN is its name.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "devices/cuda/plugin.h"
#include "devices/cuda/recording.h"
#include "devices/cuda_devices.h"
#include "devices/streams.h"
#include "ops/convolution/cuda/plan.h"

PYBIND11_MODULE(RENGA_PLUGIN, m) {
  m.doc() = "CUDA devices for the core.";
  pybind11::module_::import("renga._core");
  renga::cuda::require_usable();
  m.def("count", &renga::cuda::count, "How many devices there are.");
  m.def(
      "set_stream",
      [](std::uintptr_t stream, std::optional<int> device) {
        renga::cuda::set_stream(stream, device);
      },
      pybind11::arg("stream"), pybind11::arg("device") = std::nullopt,
      "Sets the stream on which this thread computes on a device, by default the current one, "
      "after what is on the one before; 0: the default stream.");
  m.def(
      "release_memory_of_stream",
      [](std::uintptr_t stream, int device) {
        renga::release_memory_of_stream(reinterpret_cast<void*>(stream),
                                        {renga::cuda::number(), static_cast<std::int16_t>(device)});
      },
      pybind11::arg("stream"), pybind11::arg("device"),
      "Gives memory that was allocated on a stream back to the system as soon as none of it is in "
      "use. The stream may be destroyed afterwards.");
  using renga::cuda::DeviceEvent;
  pybind11::class_<DeviceEvent>(m, "Event")
      .def(pybind11::init<int>(), pybind11::arg("device"))
      .def("record", &DeviceEvent::record, "Sets it after what this thread has begun.")
      .def("seconds_since", &DeviceEvent::seconds_since, pybind11::arg("begin"),
           "The time between two events on a device, whose later one is waited for.");
  using renga::cuda::Recording;
  pybind11::class_<Recording>(m, "Recording", "Graphs of what a thread starts on a device.")
      .def(pybind11::init<int>(), pybind11::arg("device"))
      .def("begin", &Recording::begin, "From here on nothing runs: it is recorded.")
      .def("end", &Recording::end, "Returns the number of the recorded graph.")
      .def("discard", &Recording::discard, "In place of end(), at any time.")
      .def("launch", &Recording::launch, pybind11::arg("graph"))
      .def("add_seed", &Recording::add_seed, pybind11::arg("seed"),
           "While recording: this seed is drawn anew for each run.")
      .def(
          "set_seeds",
          [](const Recording& self, const std::vector<std::uint64_t>& seeds) {
            self.set_seeds(seeds);
          },
          pybind11::arg("seeds"), "Those of the next launches, in the order of add_seed().")
      .def_property_readonly("stream", [](const Recording& self) {
        return reinterpret_cast<std::uintptr_t>(self.stream());
      });
  m.def("versions", &renga::cuda::versions,
        "Those of the driver's CUDA, of cuBLAS and cuDNN, by name.");
  m.def("cudnn_version", &renga::cuda::cudnn_version, "As cuDNN numbers it: 90100 is 9.1.");
  m.def("convolution_plans", &renga::convolution_plans, "How many plans of cuDNN are kept.");
}
