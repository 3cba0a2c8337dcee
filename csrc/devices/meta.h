// The device without memory (kMeta).
#pragma once

#include <stdexcept>

#include "devices/device.h"

namespace renga {

Driver& meta_driver();

// The elements of an array without any were asked for.
class NoElements : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace renga
