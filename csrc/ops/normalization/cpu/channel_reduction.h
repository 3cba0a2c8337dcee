// Two numbers per channel, reduced block by block. Blocks are short enough for sums in float32;
// their results are merged in float64.
#pragma once

#include <algorithm>
#include <vector>

#include "devices/parallel.h"
#include "devices/rounding.h"
#include "ops/normalization/normalization.h"

namespace renga {

// Two numbers per channel over `count` elements: (mean, sum of squared differences from it) or two
// plain sums.
struct Totals {
  explicit Totals(std::int64_t channels)
      : first(static_cast<std::size_t>(channels)), second(static_cast<std::size_t>(channels)) {}
  double count = 0;
  std::vector<double> first, second;
};

inline void merge_moments(Totals& to, double count, const double* mean, const double* squares) {
  const double all = to.count + count, weight = count / all, cross = to.count * weight;
  for (std::size_t c = 0; c < to.first.size(); ++c) {
    const double delta = mean[c] - to.first[c];
    to.first[c] += delta * weight;
    to.second[c] += squares[c] + delta * delta * cross;
  }
  to.count = all;
}

inline void merge_sums(Totals& to, double count, const double* first, const double* second) {
  for (std::size_t c = 0; c < to.first.size(); ++c) {
    to.first[c] += first[c];
    to.second[c] += second[c];
  }
  to.count += count;
}

// Channels whose sums stay in the L1 cache.
inline constexpr std::int64_t kTile = 512;

// Channels last. block(row, rows, c, channels, first, second) reduces a block of rows. The blocks
// do not depend on the number of threads, so neither does the result.
template <class Merge, class Block, class Finish>
void reduce_rows(const ChannelLayout& layout, const Merge& merge, const Block& block,
                 const Finish& finish) {
  const std::int64_t rows = layout.outer, channels = layout.channels;
  if (channels == 0) return;
  const std::int64_t tiles = divide_up(channels, kTile);
  const std::int64_t height = std::clamp<std::int64_t>(16384 / std::min(channels, kTile), 64, 256);
  const std::int64_t blocks = divide_up(rows, height);
  const std::int64_t chunks = tiles >= 8 ? 1 : std::clamp<std::int64_t>(blocks, 1, 16);
  const auto width_of = [&](std::int64_t tile) { return std::min(kTile, channels - tile * kTile); };
  std::vector<Totals> partial;
  for (std::int64_t i = 0; i < tiles * chunks; ++i) partial.emplace_back(width_of(i / chunks));
  const std::int64_t cost = 4 * std::min(channels, kTile) * rows / chunks;
  parallel_for(tiles * chunks, cost, [&](std::int64_t begin, std::int64_t end) {
    double first[kTile], second[kTile];
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t tile = i / chunks, width = width_of(tile);
      const std::int64_t chunk = i % chunks, last = blocks * (chunk + 1) / chunks;
      for (std::int64_t b = blocks * chunk / chunks; b < last; ++b) {
        const std::int64_t n = std::min(height, rows - b * height);
        block(b * height, n, tile * kTile, width, first, second);
        merge(partial[static_cast<std::size_t>(i)], static_cast<double>(n), first, second);
      }
    }
  });
  for (std::int64_t tile = 0; tile < tiles; ++tile) {
    Totals all(width_of(tile));
    for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
      const Totals& chunk_totals = partial[static_cast<std::size_t>(tile * chunks + chunk)];
      if (chunk_totals.count > 0) {
        merge(all, chunk_totals.count, chunk_totals.first.data(), chunk_totals.second.data());
      }
    }
    for (std::int64_t c = 0; c < width_of(tile); ++c) {
      const auto k = static_cast<std::size_t>(c);
      finish(tile * kTile + c, all.first[k], all.second[k]);
    }
  }
}

// Planes of one channel each. block(offset, n, c, first, second) reduces n elements from `offset`
// on.
template <class Merge, class Block, class Finish>
void reduce_planes(const ChannelLayout& layout, const Merge& merge, const Block& block,
                   const Finish& finish) {
  constexpr std::int64_t kLength = 4096;
  parallel_for(layout.channels, 4 * layout.count(), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t c = begin; c < end; ++c) {
      Totals all(1);
      for (std::int64_t o = 0; o < layout.outer; ++o) {
        const std::int64_t plane = (o * layout.channels + c) * layout.inner;
        for (std::int64_t i = 0; i < layout.inner; i += kLength) {
          const std::int64_t n = std::min(kLength, layout.inner - i);
          double first, second;
          block(plane + i, n, c, first, second);
          merge(all, static_cast<double>(n), &first, &second);
        }
      }
      finish(c, all.first[0], all.second[0]);
    }
  });
}

}  // namespace renga
