// Python's binding needs these functions of CUDA, without its headers: they are compiled where CUDA
// is linked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

namespace renga::cuda {

// Throws std::runtime_error where there is no device, no driver, or a library that is too old for
// what is called here and would fail at the first convolution.
void require_usable();

// The versions of what is linked, by name.
std::map<std::string, std::string> versions();
// Returns the version as cuDNN numbers it: 90100 is 9.1.
std::size_t cudnn_version();

// Sets the stream on which this thread computes on a device, by default the current one.
void set_stream(std::uintptr_t stream, std::optional<int> device);

class Event;

// A point in time on a device.
class DeviceEvent {
 public:
  explicit DeviceEvent(int device);
  ~DeviceEvent();
  // Records a point after what is on this thread's stream now.
  void record() const;
  // Waits for it.
  double seconds_since(const DeviceEvent& begin) const;

 private:
  int device_;
  std::unique_ptr<Event> event_;
};

}  // namespace renga::cuda
