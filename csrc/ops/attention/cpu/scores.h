// The softmax of a tile of scores, and its gradient.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "devices/rounding.h"
#include "ops/attention/attention.h"
#include "ops/attention/cpu/panels.h"
#include "ops/random/cpu/philox.h"
#include "ops/random/dropout_mask.h"
#include "simd/cpu_features.h"
#include "simd/exponential.h"
#include "simd/tile_unit.h"

namespace renga::attention {

inline constexpr std::int64_t kRows = 64, kKeys = 256;  // the largest tile: its scores are 64 KiB
inline constexpr float kNothing = -std::numeric_limits<float>::infinity();

// The rows of a tile as products take them.
inline std::int64_t padded_rows(std::int64_t rows) {
  return round_up(rows, simd::has_tiles() ? kPanel : kPanelRows);
}

// A HeadMask gives what is added to the scores of a head.
class HeadMask {
 public:
  HeadMask(const Array& mask, std::int64_t head) : is_bool_(mask.defined()) {
    if (!mask.defined()) return;
    is_bool_ = mask.dtype() == Dtype::bool_;
    const std::int64_t heads = mask.shape(1);
    data_ = mask.data() + head / heads * mask.strides()[0] + head % heads * mask.strides()[1];
    row_step_ = mask.strides()[2];
    column_step_ = mask.strides()[3];
  }
  explicit operator bool() const { return data_ != nullptr; }

  // Returns the terms of `count` keys from `key` on, padded to panels: where they are, or in
  // `terms`, which has those of the query before unless the query is a tile's first.
  const float* row(std::int64_t query, bool is_first, std::int64_t key, std::int64_t count,
                   float* terms) const {
    const std::byte* const from = data_ + query * row_step_ + key * column_step_;
    if (!is_bool_ && column_step_ == sizeof(float) && count % kPanel == 0) {
      return reinterpret_cast<const float*>(from);
    }
    if (row_step_ == 0 && !is_first) return terms;
    is_bool_ ? read<bool>(from, count, terms) : read<float>(from, count, terms);
    std::fill(terms + count, terms + round_up(count, kPanel), kNothing);
    return terms;
  }

 private:
  // Without a branch, which the processor would mispredict.
  static float term(bool is_read) {
    return std::bit_cast<float>((std::uint32_t{is_read} - 1) &
                                std::bit_cast<std::uint32_t>(kNothing));
  }
  static float term(float added) { return added; }

  // With a step that it knows, the compiler makes vectors.
  template <class T>
  void read(const std::byte* from, std::int64_t count, float* terms) const {
    const auto with = [=](auto step) {
      for (std::int64_t i = 0; i < count; ++i) {
        terms[i] = term(*reinterpret_cast<const T*>(from + i * step));
      }
    };
    constexpr std::int64_t item = sizeof(T);
    column_step_ == item ? with(std::integral_constant<std::int64_t, item>{}) : with(column_step_);
  }

  const std::byte* data_ = nullptr;
  std::int64_t row_step_ = 0, column_step_ = 0;
  bool is_bool_;
};

// Which scores of a tile the dropout keeps: bit j % 64 of word j / 64 is that of key j.
struct Dropout {
  std::uint64_t seed = 0;
  std::uint32_t threshold = 0;
  float scale = 1;          // 1 without dropout
  std::int64_t blocks = 0;  // of 64 random numbers for each query

  using Words = std::array<std::uint64_t, kKeys / kPhiloxBlock>;

  // `query` counts those of all heads.
  Words words(std::int64_t query, std::int64_t key) const {
    Words kept;
    const bool has_avx512 = simd::has_avx512();
    std::array<PhiloxBlock, 2> numbers;
    for (std::size_t i = 0; i < kept.size(); i += 2) {
      const std::int64_t block = query * blocks + key / kPhiloxBlock + static_cast<std::int64_t>(i);
      philox(seed, block, numbers, has_avx512);
      kept[i] = at_least(threshold, numbers[0], has_avx512);
      kept[i + 1] = at_least(threshold, numbers[1], has_avx512);
    }
    return kept;
  }
};

// A tile of scores: panels (padded_rows, kPanel) for `keys` keys from `key` on, of the queries from
// `query` on.
struct Tile {
  std::int64_t query, rows, padded_rows, key, keys;
  std::int64_t first_query;  // of the head, among those of all heads
  float scale;
  bool is_causal;
  HeadMask mask;
  Dropout dropout;

  std::int64_t panels() const { return divide_up(keys, kPanel); }
  std::int64_t size() const { return panels() * padded_rows * kPanel; }
  // Returns how many keys of the tile a row reads.
  std::int64_t limit(std::int64_t row) const {
    return is_causal ? std::clamp<std::int64_t>(query + row + 1 - key, 0, keys) : keys;
  }
};

// Calls body(L{}, panel offset, first lane, scores) for the vectors of a row, whose scores are
// scaled and masked. `terms` is memory for a row of the mask, the same for all rows of a tile.
template <class Target, class Body>
[[gnu::always_inline]] inline void for_each_score(const Tile& tile, std::int64_t row,
                                                  const float* scores, float* terms,
                                                  const Body& body) {
  using L = simd::Vector<Target, float>;
  typename simd::VectorTypes<Target>::Integers lanes;
  for (int i = 0; i < L::width; ++i) lanes[i] = i;
  const std::int64_t limit = tile.limit(row), panels = tile.panels();
  const float* const added =
      tile.mask ? tile.mask.row(tile.query + row, row == 0, tile.key, tile.keys, terms) : nullptr;
  for (std::int64_t p = 0; p < panels; ++p) {
    const std::int64_t at = (p * tile.padded_rows + row) * kPanel;
    const auto left = static_cast<std::int32_t>(std::min(limit - p * kPanel, kPanel));
#pragma GCC unroll 4
    for (int i = 0; i < kPanel; i += L::width) {
      typename L::V v = L::load(scores + at + i) * tile.scale;
      if (added != nullptr) v += L::load(added + p * kPanel + i);
      if (left < kPanel) v = lanes + i < left ? v : typename L::V{} + kNothing;
      body(L{}, at + i, p * kPanel + i, v);
    }
  }
}

// The kept ones of a vector, scaled.
template <class L>
[[gnu::always_inline]] inline typename L::V dropped(const Tile& tile, const Dropout::Words& words,
                                                    std::int64_t lane, const typename L::V& v) {
  const auto bits =
      static_cast<std::uint32_t>(words[static_cast<std::size_t>(lane / 64)] >> (lane % 64));
  return L::masked(bits, v * tile.dropout.scale);
}

// The softmax of the queries of a tile over all tiles so far: the maximum, and the sum of the
// exponentials relative to it.
struct Softmax {
  float top[kRows], total[kRows];
};

// Replaces scores by exponentials, after dropout, and scales `sums`, panels (padded_rows, kPanel)
// of what the exponentials of earlier tiles were multiplied with, to the new maxima.
inline void softmax_tile(const Tile& tile, float* scores, Softmax& softmax, float* sums,
                         std::int64_t columns) {
  simd::dispatch_for<float>([ =, &tile, &softmax ](auto target) __attribute__((always_inline)) {
    using Target = decltype(target);
    using L = simd::Vector<Target, float>;
    using V = typename L::V;
    alignas(64) float terms[kKeys];
    for (std::int64_t r = 0; r < tile.rows; ++r) {
      V tops = V{} + softmax.top[r];
      for_each_score<Target>(
          tile, r, scores,
          terms, [&](L, std::int64_t at, std::int64_t, const V& v) __attribute__((always_inline)) {
            tops = v > tops ? v : tops;
            L::store(v, scores + at);
          });
      float top = tops[0];
      for (int i = 1; i < L::width; ++i) top = std::max(top, tops[i]);
      const float base = top == kNothing ? 0.0f : top;
      Dropout::Words words;
      if (tile.dropout.scale != 1) {
        words = tile.dropout.words(tile.first_query + tile.query + r, tile.key);
      }
      V total{};
      for (std::int64_t p = 0; p < tile.panels(); ++p) {
        float* const row = scores + (p * tile.padded_rows + r) * kPanel;
#pragma GCC unroll 4
        for (int i = 0; i < kPanel; i += L::width) {
          const V e = simd::exponential<Target>(L::load(row + i) - base);
          total += e;
          L::store(tile.dropout.scale == 1 ? e : dropped<L>(tile, words, p * kPanel + i, e),
                   row + i);
        }
      }
      const float shrink = std::exp(softmax.top[r] - base);
      softmax.total[r] = softmax.total[r] * shrink + L::sum(total);
      softmax.top[r] = top;
      if (shrink == 1) continue;
      for (std::int64_t c = 0; c < columns; c += L::width) {
        float* const sum = sums + (c / kPanel * tile.padded_rows + r) * kPanel + c % kPanel;
        L::store(L::load(sum) * shrink, sum);
      }
    }
    for (std::int64_t p = 0; p < tile.panels(); ++p) {
      float* const padding = scores + (p * tile.padded_rows + tile.rows) * kPanel;
      std::fill_n(padding, (tile.padded_rows - tile.rows) * kPanel, 0.0f);
    }
  });
}

// Replaces scores by the weights, after dropout, and the gradients of these weights by those of the
// scores before scaling. For each row, `log_sums` has the logarithm of the softmax's denominator,
// -inf without keys, and `means` the sum of weights times their gradients.
inline void softmax_grad_tile(const Tile& tile, float* scores, float* grads, const float* log_sums,
                              const float* means) {
  simd::dispatch_for<float>([ =, &tile ](auto target) __attribute__((always_inline)) {
    using Target = decltype(target);
    using L = simd::Vector<Target, float>;
    using V = typename L::V;
    const bool drops = tile.dropout.scale != 1;
    alignas(64) float terms[kKeys];
    for (std::int64_t r = 0; r < tile.rows; ++r) {
      // Finite, as the difference of two infinities would be NaN.
      const float log_sum = std::max(log_sums[r], -std::numeric_limits<float>::max());
      Dropout::Words words;
      if (drops) words = tile.dropout.words(tile.first_query + tile.query + r, tile.key);
      for_each_score<Target>(
          tile, r, scores, terms,
          [&](L, std::int64_t at, std::int64_t lane, const V& v) __attribute__((always_inline)) {
            const V p = simd::exponential<Target>(v - log_sum);
            V gp = L::load(grads + at);
            if (drops) gp = dropped<L>(tile, words, lane, gp);
            L::store(p * (gp - means[r]) * tile.scale, grads + at);
            L::store(drops ? dropped<L>(tile, words, lane, p) : p, scores + at);
          });
    }
    for (std::int64_t p = 0; p < tile.panels(); ++p) {
      for (float* const x : {scores, grads}) {
        float* const padding = x + (p * tile.padded_rows + tile.rows) * kPanel;
        std::fill_n(padding, (tile.padded_rows - tile.rows) * kPanel, 0.0f);
      }
    }
  });
}

}  // namespace renga::attention
