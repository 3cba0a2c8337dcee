#include "devices/cuda/plugin.h"

#include <stdexcept>

#include "devices/cuda/cublas_lt.h"
#include "devices/cuda/cuda.h"
#include "devices/cuda/cudnn.h"
#include "devices/cuda/event.h"
#include "devices/cuda_devices.h"
#include "devices/gil_release.h"

namespace renga::cuda {
namespace {

// Returns the text of a number whose parts count `major` and `minor`.
std::string version_text(std::size_t version, std::size_t major, std::size_t minor) {
  return std::to_string(version / major) + "." + std::to_string(version % major / minor);
}

// Up to cuDNN 8, major versions counted 1000.
std::string cudnn_version_text() {
  const std::size_t version = cudnnGetVersion();
  return version_text(version, version < 10000 ? 1000 : 10000, 100);
}

}  // namespace

void require_usable() {
  require_devices();
  constexpr std::size_t kLeastCudnn = 90000, kLeastCublas = 120000;
  if (cudnnGetVersion() >= kLeastCudnn && cublasLtGetVersion() >= kLeastCublas) return;
  throw std::runtime_error("expected cuDNN 9.0 and cuBLAS 12.0 or newer, got cuDNN " +
                           versions()["cuDNN"] + " and cuBLAS " + versions()["cuBLAS"]);
}

std::map<std::string, std::string> versions() {
  int driver = 0;
  RENGA_CUDA(cudaDriverGetVersion(&driver));
  return {{"driver", version_text(static_cast<std::size_t>(driver), 1000, 10)},
          {"cuBLAS", version_text(cublasLtGetVersion(), 10000, 100)},
          {"cuDNN", cudnn_version_text()}};
}

std::size_t cudnn_version() { return cudnnGetVersion(); }

void set_stream(std::uintptr_t stream, std::optional<int> device) {
  int index = 0;
  RENGA_CUDA(cudaGetDevice(&index));
  set_stream(device.value_or(index), reinterpret_cast<cudaStream_t>(stream));
}

DeviceEvent::DeviceEvent(int device) : device_(device) {
  const Use use(device_);
  event_ = std::make_unique<Event>();
}

DeviceEvent::~DeviceEvent() = default;

void DeviceEvent::record() const {
  const Use use(device_);
  event_->record(stream());
}

double DeviceEvent::seconds_since(const DeviceEvent& begin) const {
  const GilRelease wait;
  const Use use(device_);
  return event_->milliseconds_since(*begin.event_) / 1e3;
}

int count() { return driver_of({number(), 0}).count(); }

Device device(int index) {
  try {
    require_usable();
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(std::string("cuda: ") + error.what());
  }
  if (index < 0 || index >= count()) {
    throw std::invalid_argument("cuda: expected a device below " + std::to_string(count()) +
                                ", got " + std::to_string(index));
  }
  return {number(), static_cast<std::int16_t>(index)};
}

}  // namespace renga::cuda
