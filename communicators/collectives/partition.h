// How a vector of bytes is split over ranks, and into chunks.
#pragma once

#include <algorithm>
#include <cstdint>

namespace renga {

struct Interval {
  std::int64_t begin;
  std::int64_t end;
  std::int64_t length() const { return end - begin; }
};

// The part of [0, bytes) that `rank` reduces. Its bounds are multiples of a cache line, and so of
// any dtype's size.
inline Interval partition(std::int64_t bytes, int rank, int size) {
  constexpr std::int64_t line = 64;
  const std::int64_t length = ((bytes + size - 1) / size + line - 1) / line * line;
  return {std::min(bytes, rank * length), std::min(bytes, (rank + 1) * length)};
}

// Calls visit(begin, length) for consecutive chunks of at most `chunk_bytes` that cover [0, bytes).
template <class Visit>
void for_each_chunk(std::int64_t bytes, std::int64_t chunk_bytes, const Visit& visit) {
  for (std::int64_t begin = 0; begin < bytes; begin += chunk_bytes) {
    visit(begin, std::min(chunk_bytes, bytes - begin));
  }
}

}  // namespace renga
