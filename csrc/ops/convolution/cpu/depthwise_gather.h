// Depthwise forward pass and input gradient: each pixel of the result gathers the input pixels that
// its kernel offsets read, channel by channel.
#pragma once

#include <algorithm>
#include <vector>

#include "devices/parallel.h"
#include "devices/rounding.h"
#include "ops/convolution/cpu/index_map.h"
#include "simd/vector_group.h"

namespace renga::convolution::depthwise {

using simd::add_product, simd::dispatch_for, simd::load_group, simd::store_group;

// Filters in blocks of channels, kernel offset after kernel offset, so that what is multiplied
// together adjoins: rows of all channels would compete for the same cache sets.
class PackedFilters {
 public:
  // W is (C, 1, kh, kw).
  explicit PackedFilters(const Array& W)
      : offsets_(W.shape(2) * W.shape(3)),
        packed_(zeros({round_up(W.shape(0), kBlock) * offsets_}, Dtype::float32)) {
    const Array dense = contiguous(W);
    const float* from = dense.as<const float>();
    for (std::int64_t c = 0; c < W.shape(0); ++c) {
      for (std::int64_t k = 0; k < offsets_; ++k) packed_.as<float>()[index(c, k)] = *from++;
    }
  }

  // The weights of the channels from c on at a kernel offset.
  template <class Target, int count>
  [[gnu::always_inline]] void load(std::int64_t c, std::int64_t offset,
                                   simd::VectorGroup<Target, count>& x) const {
    const float* const from = packed_.as<const float>();
#pragma GCC unroll 4
    for (int i = 0; i < count; ++i) {
      x.vectors[i] = simd::load_floats<Target>(from + index(c + i * Target::width, offset));
    }
  }
  void load(std::int64_t c, std::int64_t offset, float& x) const {
    x = packed_.as<const float>()[index(c, offset)];
  }
  // The weights of the channels from c on, those of a kernel offset kBlock after those of the one
  // before.
  const float* of(std::int64_t c) const { return packed_.as<const float>() + index(c, 0); }

  static constexpr std::int64_t kBlock = 16;

 private:
  std::int64_t index(std::int64_t c, std::int64_t offset) const {
    return (c / kBlock * offsets_ + offset) * kBlock + c % kBlock;
  }

  std::int64_t offsets_;
  Array packed_;
};

// Images are (N, H, W, C), row-major. The bias has one number per channel.
template <class Pixel>
class GatherKernel {
 public:
  // In a row, except at its ends, columns `period` apart read the same kernel offsets, and input
  // columns `step` apart.
  GatherKernel(const Array& input, const PackedFilters& filters, const IndexMap& map,
               std::int64_t period, std::int64_t step, const Array& result, const Array& bias)
      : input_(input),
        filters_(filters),
        row_map_(map.rows),
        column_map_(map.columns),
        period_(period),
        step_(step),
        result_(result),
        bias_(bias) {
    for (std::int64_t w = 0; w < columns(); ++w) starts_group_.push_back(starts_group(w));
  }

  void run() const {
    const std::int64_t cost = columns() * channels() * row_map_.offsets() * column_map_.offsets();
    parallel_for(result_.shape(0) * result_.shape(1), cost,
                 [&](std::int64_t begin, std::int64_t end) {
                   Sources sources;
                   for (; begin < end; ++begin) gather_row(begin, sources);
                 });
  }

 private:
  // Columns that are gathered together.
  static constexpr int kGroup = 4;

  struct Source {
    const Pixel* pixels;
    std::int64_t offset;  // the kernel offset; in Sources::rows, the first one of its row
    bool is_new;          // whether the row before has not read this input row
  };
  // Sources has what a row of the result reads, and what its pixel at one column reads.
  struct Sources {
    std::vector<Source> rows, pixels;
    std::vector<const Pixel*> newest;  // the last pixel in each new row
  };

  std::int64_t columns() const { return result_.shape(2); }
  std::int64_t channels() const { return result_.shape(3); }

  bool starts_group(std::int64_t w) const {
    for (int j = 1; j < kGroup; ++j) {
      if (w + j * period_ >= columns()) return false;
      for (std::int64_t k = 0; k < column_map_.offsets(); ++k) {
        const std::int64_t first = column_map_.inputs_of(w)[k];
        const std::int64_t other = column_map_.inputs_of(w + j * period_)[k];
        if (first == AxisIndexMap::kOutside ? other != first : other != first + j * step_) {
          return false;
        }
      }
    }
    return true;
  }

  void gather_row(std::int64_t row, Sources& sources) const {
    find_rows(row, sources);
    Pixel* const to = result_.as<Pixel>() + row * columns() * channels();
    for (std::int64_t phase = 0; phase < period_; ++phase) {
      for (std::int64_t w = phase; w < columns();) {
        find_pixels(w, sources);
        if (starts_group_[static_cast<std::size_t>(w)]) {
          gather<kGroup>(sources, to + w * channels());
          w += kGroup * period_;
        } else {
          gather<1>(sources, to + w * channels());
          w += period_;
        }
      }
    }
  }

  void find_rows(std::int64_t row, Sources& sources) const {
    const std::int64_t image = row / result_.shape(1), h = row % result_.shape(1);
    const std::int64_t* const before = h > 0 ? row_map_.inputs_of(h - 1) : nullptr;
    sources.rows.clear();
    for (std::int64_t k = 0; k < row_map_.offsets(); ++k) {
      const std::int64_t input = row_map_.inputs_of(h)[k];
      if (input == AxisIndexMap::kOutside) continue;
      const bool is_new = before == nullptr || std::find(before, before + row_map_.offsets(),
                                                         input) == before + row_map_.offsets();
      sources.rows.push_back({input_.as<const Pixel>() +
                                  (image * input_.shape(1) + input) * input_.shape(2) * channels(),
                              k * column_map_.offsets(), is_new});
    }
  }

  void find_pixels(std::int64_t w, Sources& sources) const {
    sources.pixels.clear();
    sources.newest.clear();
    for (const Source& row : sources.rows) {
      std::int64_t newest = 0;
      for (std::int64_t k = 0; k < column_map_.offsets(); ++k) {
        const std::int64_t input = column_map_.inputs_of(w)[k];
        if (input == AxisIndexMap::kOutside) continue;
        sources.pixels.push_back({row.pixels + input * channels(), row.offset + k, row.is_new});
        newest = std::max(newest, input);
      }
      if (row.is_new) sources.newest.push_back(row.pixels + newest * channels());
    }
  }

  // Writes `group` columns, `period` apart from `to` on. The sources are those of the first one.
  template <int group>
  void gather(const Sources& sources, Pixel* to) const {
    const std::int64_t result_step = period_ * channels(), input_step = step_ * channels();
    const std::int64_t between = step_ > 1 ? channels() : 0;
    dispatch_for<Pixel>([&, to ](auto target) __attribute__((always_inline)) {
      simd::for_each_group<decltype(target), 4 / group>(
          channels(), [&](std::int64_t c, auto x) __attribute__((always_inline)) {
            using X = decltype(x);
            X sums[group];
#pragma GCC unroll 4
            for (int j = 0; j < group; ++j) load_group(bias_.as<const float>() + c, sums[j]);
            for (const Source& source : sources.pixels) {
              X weight;
              filters_.load(c, source.offset, weight);
#pragma GCC unroll 4
              for (int j = 0; j < group; ++j) {
                X pixel;
                load_group(source.pixels + j * input_step + c, pixel);
                add_product(pixel, weight, sums[j]);
              }
            }
            // The next columns are too far apart for the hardware prefetcher.
            if (group > 1) {
              for (const Pixel* newest : sources.newest) {
#pragma GCC unroll 4
                for (int j = group; j < 2 * group; ++j) {
                  __builtin_prefetch(newest + j * input_step + c, 0, 2);
                  __builtin_prefetch(newest + j * input_step + c - between, 0, 2);
                }
              }
            }
#pragma GCC unroll 4
            for (int j = 0; j < group; ++j) {
              if (group > 1) __builtin_prefetch(to + (group + j) * result_step + c, 1);
              store_group(sums[j], to + j * result_step + c);
            }
          });
    });
  }

  const Array input_;
  const PackedFilters& filters_;
  const AxisIndexMap &row_map_, &column_map_;
  const std::int64_t period_, step_;
  const Array result_, bias_;
  std::vector<bool> starts_group_;  // by column
};

}  // namespace renga::convolution::depthwise
