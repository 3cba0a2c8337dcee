// Hashes of lists of numbers, by which tables find what was made for shapes and options.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace renga {

struct NumbersHash {
  std::size_t operator()(const std::vector<std::int64_t>& numbers) const {
    std::size_t hash = 0xcbf29ce484222325u;
    for (const std::int64_t number : numbers) {
      hash = (hash ^ static_cast<std::size_t>(number)) * 0x100000001b3u;
    }
    return hash;
  }
};

}  // namespace renga
