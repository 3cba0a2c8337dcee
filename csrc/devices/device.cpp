#include "devices/device.h"

#include <stdexcept>

#include "devices/gil_release.h"
#include "devices/host.h"
#include "devices/meta.h"

namespace renga {

constinit GilReleaseHooks gil_release_hooks;

namespace {

std::vector<Driver*>& registry() {
  // These register here and not from statics of their own, so that their numbers do not depend on
  // the order of initialization.
  static std::vector<Driver*> all{&host_driver(), &meta_driver()};
  return all;
}

}  // namespace

std::uint8_t register_driver(Driver* driver) {
  registry().push_back(driver);
  return static_cast<std::uint8_t>(registry().size() - 1);
}

Driver& driver_of(Device device) { return *registry()[device.driver]; }

const std::vector<Driver*>& drivers() { return registry(); }

std::string to_string(Device device) {
  const Driver& driver = driver_of(device);
  if (device.is_host()) return driver.name();
  return driver.name() + ":" + std::to_string(device.index);
}

Device device_from_string(const std::string& name) {
  const auto colon = name.find(':');
  const std::string kind = name.substr(0, colon);
  const int index = colon == std::string::npos ? 0 : std::stoi(name.substr(colon + 1));
  const auto& all = drivers();
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i]->name() != kind) continue;
    if (index < 0 || index >= all[i]->count()) {
      throw std::invalid_argument("device: expected " + kind + ":0 to " + kind + ":" +
                                  std::to_string(all[i]->count() - 1) + ", got " + name);
    }
    return Device{static_cast<std::uint8_t>(i), static_cast<std::int16_t>(index)};
  }
  throw std::invalid_argument("device: no driver is loaded for " + name);
}

}  // namespace renga
