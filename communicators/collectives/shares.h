// How a piece of a vector is shared out over ranks that each reduce a part of it.
#pragma once

#include <algorithm>
#include <cstdint>

namespace renga {

struct Stretch {
  std::int64_t begin;
  std::int64_t end;
  std::int64_t length() const { return end - begin; }
};

// The part of [0, bytes) that falls to `rank`. Shares are whole cache lines, so of any dtype.
inline Stretch share(std::int64_t bytes, int rank, int size) {
  constexpr std::int64_t line = 64;
  const std::int64_t each = ((bytes + size - 1) / size + line - 1) / line * line;
  return {std::min(bytes, rank * each), std::min(bytes, (rank + 1) * each)};
}

// Calls visit(begin, length) for consecutive pieces of at most `piece` that cover [0, bytes).
template <class Visit>
void in_pieces(std::int64_t bytes, std::int64_t piece, const Visit& visit) {
  for (std::int64_t begin = 0; begin < bytes; begin += piece) {
    visit(begin, std::min(piece, bytes - begin));
  }
}

}  // namespace renga
