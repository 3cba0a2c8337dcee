// The device seam: an operation asks its family's table for the kernels of the device it runs on.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <stdexcept>
#include <string>

#include "devices/device.h"

namespace renga {

// Becomes a kernel of any signature that does nothing and returns false, if anything.
struct NoKernel {
  template <class R, class... Args>
  using Kernel = R (*)(Args...);
  template <class R, class... Args>
  constexpr operator Kernel<R, Args...>() const {
    return [](Args...) { return R(); };
  }
};

// All kernels of a family as NoKernel, its options as by default.
template <class Kernels, std::size_t... I>
constexpr Kernels no_kernels() {
  if constexpr (requires { Kernels{(void(I), NoKernel{})..., NoKernel{}}; }) {
    return no_kernels<Kernels, I..., sizeof...(I)>();
  } else {
    return Kernels{(void(I), NoKernel{})...};
  }
}

// `Kernels` is a struct of function pointers, one per kernel of the family. The kernels' own files
// fill in a row each, by a static `registered = table.add(driver, {...})`. The row of kMeta is
// there from the start.
template <class Kernels>
class KernelTable {
 public:
  explicit constexpr KernelTable(const char* family) : family_(family) {
    rows_[kMeta.driver] = no_kernels<Kernels>();
  }

  bool add(std::uint8_t driver, const Kernels& kernels) {
    rows_[driver] = kernels;
    return true;
  }

  bool has(Device device) const { return rows_[device.driver].has_value(); }

  // The device that computes for `device`: itself, or the host where it has no kernels.
  Device computing(Device device) const { return has(device) ? device : Device{}; }

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
  std::array<std::optional<Kernels>, kMostDrivers> rows_{};
};

}  // namespace renga
