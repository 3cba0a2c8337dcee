// The CUDA plugin: importing it puts the driver and its kernels into the core's tables.
// RENGA_PLUGIN is its name.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "devices/cuda/cublas_lt.h"
#include "devices/cuda/cuda.h"
#include "devices/cuda/cudnn.h"
#include "devices/cuda/event.h"
#include "devices/cuda/recording.h"
#include "devices/gil_release.h"
#include "devices/streams.h"
#include "ops/convolution/cuda/plan.h"

namespace {

// A point in time on a device.
class DeviceEvent {
 public:
  explicit DeviceEvent(int device) : device_(device) {
    const renga::cuda::Use use(device_);
    event_ = std::make_unique<renga::cuda::Event>();
  }
  // After what is on this thread's stream now.
  void record() const {
    const renga::cuda::Use use(device_);
    event_->record(renga::cuda::stream());
  }
  // Waits for it.
  double seconds_since(const DeviceEvent& begin) const {
    const renga::GilRelease wait;
    const renga::cuda::Use use(device_);
    return event_->milliseconds_since(*begin.event_) / 1e3;
  }

 private:
  int device_;
  std::unique_ptr<renga::cuda::Event> event_;
};

// Of a number whose parts count `major` and `minor`.
std::string version_text(std::size_t version, std::size_t major, std::size_t minor) {
  return std::to_string(version / major) + "." + std::to_string(version % major / minor);
}

// Up to cuDNN 8, major versions counted 1000.
std::string cudnn_version_text() {
  const std::size_t version = cudnnGetVersion();
  return version_text(version, version < 10000 ? 1000 : 10000, 100);
}

// The versions of what the plugin is linked to, by name.
std::map<std::string, std::string> versions() {
  int driver = 0;
  RENGA_CUDA(cudaDriverGetVersion(&driver));
  return {{"driver", version_text(static_cast<std::size_t>(driver), 1000, 10)},
          {"cuBLAS", version_text(cublasLtGetVersion(), 10000, 100)},
          {"cuDNN", cudnn_version_text()}};
}

// The oldest libraries that have what is called here: others would fail at the first convolution.
void require_libraries() {
  constexpr std::size_t kLeastCudnn = 90000, kLeastCublas = 120000;
  if (cudnnGetVersion() >= kLeastCudnn && cublasLtGetVersion() >= kLeastCublas) return;
  throw std::runtime_error("expected cuDNN 9.0 and cuBLAS 12.0 or newer, got cuDNN " +
                           versions()["cuDNN"] + " and cuBLAS " + versions()["cuBLAS"]);
}

}  // namespace

PYBIND11_MODULE(RENGA_PLUGIN, m) {
  m.doc() = "CUDA devices for the core.";
  pybind11::module_::import("renga._core");
  renga::cuda::require_devices();
  require_libraries();
  m.def(
      "count",
      [] {
        return renga::driver_of({renga::cuda::number(), 0}).count();
      },
      "How many devices there are.");
  m.def(
      "set_stream",
      [](std::uintptr_t stream, std::optional<int> device) {
        int index = 0;
        RENGA_CUDA(cudaGetDevice(&index));
        renga::cuda::set_stream(device.value_or(index), reinterpret_cast<cudaStream_t>(stream));
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
  m.def("versions", &versions, "Those of the driver's CUDA, of cuBLAS and cuDNN, by name.");
  m.def("cudnn_version", &cudnnGetVersion, "As cuDNN numbers it: 90100 is 9.1.");
  m.def("convolution_plans", &renga::convolution_plans, "How many plans of cuDNN are kept.");
}
