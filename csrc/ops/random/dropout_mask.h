// The bits of a dropout's mask, as kernels read them.
#pragma once

#include <cstring>

#include "ops/random/random.h"

namespace renga {

class MaskBits {
 public:
  MaskBits() = default;
  explicit MaskBits(const DropoutMask& mask) : bytes_(mask.bits.data()) {}
  // Whether there is a mask.
  RENGA_HOST_DEVICE explicit operator bool() const { return bytes_ != nullptr; }

  // The bits of the elements from `position` in memory on, at least 25.
  RENGA_INLINE std::uint32_t from(std::int64_t position) const {
    std::uint32_t bits;
    std::memcpy(&bits, bytes_ + (position >> 3), sizeof bits);
    return bits >> (position & 7);
  }

 private:
  const std::byte* bytes_ = nullptr;
};

}  // namespace renga
