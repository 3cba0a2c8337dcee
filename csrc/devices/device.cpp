#include "devices/device.h"

#include <array>
#include <atomic>
#include <mutex>
#include <sstream>
#include <stdexcept>

#include "devices/gil_release.h"
#include "devices/host.h"
#include "devices/meta.h"

namespace renga {

constinit GilReleaseHooks gil_release_hooks;

namespace {

// Read without a lock while others register: a driver is stored before it is counted.
struct Registry {
  // These register here and not from statics of their own, so that their numbers do not depend on
  // the order of initialization.
  std::array<Driver*, kMostDrivers> all{&host_driver(), &meta_driver()};
  std::atomic<std::size_t> count{2};
  std::mutex adding;
};

Registry& registry() {
  static Registry the_registry;
  return the_registry;
}

}  // namespace

std::uint8_t register_driver(Driver* driver) {
  Registry& r = registry();
  const std::lock_guard lock(r.adding);
  const std::size_t number = r.count;
  if (number == kMostDrivers) {
    throw std::length_error("device: expected at most " + std::to_string(kMostDrivers) +
                            " kinds of devices, got one more: " + driver->name());
  }
  r.all[number] = driver;
  r.count = number + 1;
  return static_cast<std::uint8_t>(number);
}

Driver& driver_of(Device device) { return *registry().all[device.driver]; }

std::span<Driver* const> drivers() { return std::span(registry().all).first(registry().count); }

std::string to_string(Device device) {
  const Driver& driver = driver_of(device);
  if (device.is_host()) return driver.name();
  return driver.name() + ":" + std::to_string(device.index);
}

Device device_from_string(const std::string& name) {
  const auto colon = name.find(':');
  const std::string kind = name.substr(0, colon);
  const int index = colon == std::string::npos ? 0 : std::stoi(name.substr(colon + 1));
  const auto all = drivers();
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i]->name() != kind) continue;
    if (index < 0 || index >= all[i]->count()) {
      std::ostringstream message;
      message << "device: expected " << kind << ":0 to " << kind << ':' << all[i]->count() - 1
              << ", got " << name;
      throw std::invalid_argument(message.str());
    }
    return Device{static_cast<std::uint8_t>(i), static_cast<std::int16_t>(index)};
  }
  throw std::invalid_argument("device: no driver is loaded for " + name);
}

}  // namespace renga
