// Integers rounded up.
#pragma once

#include <cstdint>

namespace renga {

// How many of `size` it takes to cover n.
constexpr std::int64_t divide_up(std::int64_t n, std::int64_t size) {
  return (n + size - 1) / size;
}

constexpr std::int64_t round_up(std::int64_t n, std::int64_t multiple) {
  return divide_up(n, multiple) * multiple;
}

}  // namespace renga
