// A product that is computed tile by tile is divided here.
#pragma once

#include <algorithm>
#include <cstdint>

#include "devices/parallel.h"
#include "devices/rounding.h"

namespace renga {

// Sums of k products are made of parts of at most so many, as even as multiples of 16 can be. They
// depend on k alone: so do the bits of the result.
inline std::int64_t part_depth(std::int64_t k, std::int64_t most) {
  constexpr std::int64_t kMultiple = 16;  // what transposing takes at a time
  return round_up(divide_up(k, divide_up(k, most)), kMultiple);
}

// Rows of the result, and panels of its columns.
struct Part {
  std::int64_t row, row_end, panel, panel_end;
};

// Returns how many rows of parts are best, if there are so many parts: what several read is least.
inline std::int64_t rows_of_parts(std::int64_t parts, std::int64_t m, std::int64_t n) {
  std::int64_t best = 1;
  for (std::int64_t rows = 2; rows <= parts; ++rows) {
    const auto read = [=](std::int64_t rows) { return m * (parts / rows) + n * rows; };
    if (parts % rows == 0 && read(rows) < read(best)) best = rows;
  }
  return best;
}

// Calls body(part) with parts that cover a product (m, k) (k, n), a thread for each. They begin at
// multiples of `height` rows; panels are `width` columns wide.
template <class Body>
void for_parts(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t height,
               std::int64_t width, const Body& body) {
  const std::int64_t operations = m * n * k / 8;  // a vector of products is one
  const std::int64_t parts = thread_count(operations);
  const std::int64_t down = rows_of_parts(parts, m, n), across = parts / down;
  const std::int64_t tiles = divide_up(m, height), panels = divide_up(n, width);
  parallel_for(parts, divide_up(operations, parts), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t row = i / across, column = i % across;
      const Part part{tiles * row / down * height, std::min(m, tiles * (row + 1) / down * height),
                      panels * column / across, panels * (column + 1) / across};
      // There may be fewer tiles or panels than threads.
      if (part.row < part.row_end && part.panel < part.panel_end) body(part);
    }
  });
}

// Calls body(part) for few rows, which one thread reads as fast as several: parts are as many tiles
// as can be, counted panel by panel, so a panel may be two threads', of which each computes some
// rows. With whole panels, two threads would take 11 and 10 of 21. A thread has up to three parts.
template <class Body>
void for_tiles(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t height,
               std::int64_t width, const Body& body) {
  const std::int64_t tiles = divide_up(m, height), all = tiles * divide_up(n, width);
  const std::int64_t operations = m * n * k / 8;
  const std::int64_t shares = std::clamp<std::int64_t>(all, 1, thread_count(operations));
  parallel_for(shares, divide_up(operations, shares), [&](std::int64_t begin, std::int64_t end) {
    const std::int64_t last = all * end / shares;
    for (std::int64_t tile = all * begin / shares; tile < last;) {
      const std::int64_t panel = tile / tiles, first = tile % tiles, whole = (last - tile) / tiles;
      if (first == 0 && whole > 0) {
        body(Part{0, m, panel, panel + whole});
        tile += whole * tiles;
      } else {
        const std::int64_t past = std::min(tiles, first + last - tile);
        body(Part{m * first / tiles, m * past / tiles, panel, panel + 1});
        tile += past - first;
      }
    }
  });
}

}  // namespace renga
