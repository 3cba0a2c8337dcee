// The bits of a dropout's mask, as loops over elements in vectors read them.
#pragma once

#include <cstring>

#include "ops/random/random.h"

namespace renga {

struct DropMask {
  DropMask() = default;
  explicit DropMask(const Array& mask) : bytes(mask.data()) {}
  explicit operator bool() const { return bytes != nullptr; }

  // Those of a vector's elements, the first of which is at `place`.
  [[gnu::always_inline]] std::uint32_t from(std::int64_t place) const {
    std::uint32_t bits;
    std::memcpy(&bits, bytes + (place >> 3), sizeof bits);
    return bits >> (place & 7);
  }

  const std::byte* bytes = nullptr;
};

}  // namespace renga
