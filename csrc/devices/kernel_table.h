// The device seam: an operation asks its family's table for the kernels of the device it runs on.
#pragma once

#include <array>
#include <optional>
#include <stdexcept>
#include <string>

#include "devices/device.h"

namespace renga {

// `Kernels` is a struct of function pointers, one per kernel of the family. The kernels' own files
// fill in a row each, by a static `registered = table.add(driver, {...})`.
template <class Kernels>
class KernelTable {
 public:
  explicit constexpr KernelTable(const char* family) : family_(family) {}

  bool add(std::uint8_t driver, const Kernels& kernels) {
    rows_[driver] = kernels;
    return true;
  }

  const Kernels& on(Device device) const {
    const auto& row = rows_[device.driver];
    if (!row) {
      throw std::runtime_error(std::string(family_) + ": no kernels for device " +
                               to_string(device));
    }
    return *row;
  }

 private:
  const char* family_;
  std::array<std::optional<Kernels>, 8> rows_{};
};

}  // namespace renga
