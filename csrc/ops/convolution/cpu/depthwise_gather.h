// Depthwise forward pass and input gradient: each pixel of the result gathers the input pixels that
// its kernel offsets read, channel by channel.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "devices/parallel.h"
#include "devices/rounding.h"
#include "lazy/deferred_parts.h"
#include "ops/convolution/cpu/depthwise_columns.h"
#include "ops/convolution/cpu/index_map.h"
#include "simd/vector_group.h"

namespace renga::convolution::depthwise {

using simd::add_product, simd::dispatch_for, simd::load_group, simd::store_group;

// Filters in blocks of channels, kernel offset after kernel offset, so that what is multiplied
// together adjoins: rows of all channels would compete for the same cache sets.
template <class Number>
class PackedFilters {
 public:
  // W is (C, 1, [kd,] kh, kw).
  explicit PackedFilters(const Array& W)
      : offsets_(W.size() / W.shape(0)),
        packed_(zeros({round_up(W.shape(0), kBlock) * offsets_}, dtype_of<Number>)) {
    const Array dense = contiguous(W);
    const auto* from = dense.as<const Number>();
    for (std::int64_t c = 0; c < W.shape(0); ++c) {
      for (std::int64_t k = 0; k < offsets_; ++k) packed_.as<Number>()[index(c, k)] = *from++;
    }
  }

  // The weights of the channels from c on at a kernel offset.
  template <class Target, int count>
  [[gnu::always_inline]] void load(std::int64_t c, std::int64_t offset,
                                   simd::VectorGroup<Target, count, Number>& x) const {
    using L = simd::Vector<Target, Number>;
#pragma GCC unroll 4
    for (int i = 0; i < count; ++i) {
      x.vectors[i] = L::load(numbers() + index(c + i * L::width, offset));
    }
  }
  void load(std::int64_t c, std::int64_t offset, Number& x) const {
    x = numbers()[index(c, offset)];
  }
  // The weights of the channels from c on, those of a kernel offset kBlock after those of the one
  // before.
  const Number* of(std::int64_t c) const { return numbers() + index(c, 0); }

  static constexpr std::int64_t kBlock = 16;

 private:
  const Number* numbers() const { return packed_.as<const Number>(); }
  std::int64_t index(std::int64_t c, std::int64_t offset) const {
    return (c / kBlock * offsets_ + offset) * kBlock + c % kBlock;
  }

  std::int64_t offsets_;
  Array packed_;
};

// Which columns of the input a column of the result reads.
struct ColumnPattern {
  // In a row, except at its ends, columns `period` apart read the same kernel offsets, and input
  // columns `step` apart.
  std::int64_t period, step;
  // The first input column of column 0, if a column reads one for each kernel offset, which are
  // `dilation` apart, and whether later ones have earlier kernel offsets.
  std::optional<std::int64_t> first = {};
  std::int64_t dilation = 1;
  bool is_reversed = false;
};

// Whether there is an inner loop in which each pixel is loaded once (depthwise_columns.h).
inline bool has_inner_loop(const ColumnPattern& pattern, std::int64_t kernel_columns) {
  return pattern.first && pattern.step <= 2 &&
         (kernel_columns == 3 || kernel_columns == 5 || kernel_columns == 7);
}

// Images are (N, rows, columns, C), row-major. The bias has one number per channel.
template <class Pixel>
class GatherKernel {
 public:
  GatherKernel(const Array& input, const PackedFilters<Sum<Pixel>>& filters, const IndexMap& map,
               const ColumnPattern& pattern, const Array& result, const Array& bias)
      : input_(input),
        filters_(filters),
        row_map_(map.rows),
        column_map_(map.columns),
        pattern_(pattern),
        result_(result),
        bias_(bias) {
    for (std::int64_t w = 0; w < columns(); ++w) starts_group_.push_back(starts_group(w));
  }

  // Rows of the result go through `pass`, if there is one, while they are in the cache.
  void run(const PartPass& pass) const {
    constexpr std::int64_t kCached = 1 << 14;  // numbers
    const std::int64_t size = columns() * channels();
    const std::int64_t cost = size * row_map_.offsets() * column_map_.offsets();
    const std::int64_t together = std::max<std::int64_t>(kCached / size, 1);
    parallel_for(result_.shape(0) * result_.shape(1), cost,
                 [&](std::int64_t begin, std::int64_t end) {
                   Sources sources;
                   for (std::int64_t row = begin; row < end; begin = row) {
                     const std::int64_t last = std::min(begin + together, end);
                     for (; row < last; ++row) gather_row(row, sources);
                     if (pass) pass(begin * size, last * size);
                   }
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
      if (w + j * pattern_.period >= columns()) return false;
      for (std::int64_t k = 0; k < column_map_.offsets(); ++k) {
        const std::int64_t first = column_map_.inputs_of(w)[k];
        const std::int64_t other = column_map_.inputs_of(w + j * pattern_.period)[k];
        if (first == AxisIndexMap::kOutside ? other != first : other != first + j * pattern_.step) {
          return false;
        }
      }
    }
    return true;
  }

  void gather_row(std::int64_t row, Sources& sources) const {
    find_rows(row, sources);
    Pixel* const to = result_.as<Pixel>() + row * columns() * channels();
    if (has_inner_loop(pattern_, column_map_.offsets())) return gather_columns(sources.rows, to);
    for (std::int64_t phase = 0; phase < pattern_.period; ++phase) {
      for (std::int64_t w = phase; w < columns();) {
        find_pixels(w, sources);
        if (starts_group_[static_cast<std::size_t>(w)]) {
          gather<kGroup>(sources, to + w * channels());
          w += kGroup * pattern_.period;
        } else {
          gather<1>(sources, to + w * channels());
          w += pattern_.period;
        }
      }
    }
  }

  void gather_columns(const std::vector<Source>& rows, Pixel* to) const {
    const auto with_step = [&]<int taps>(std::integral_constant<int, taps>) {
      pattern_.step == 1 ? gather_columns<taps, 1>(rows, to) : gather_columns<taps, 2>(rows, to);
    };
    switch (column_map_.offsets()) {
      case 3:
        return with_step(std::integral_constant<int, 3>{});
      case 5:
        return with_step(std::integral_constant<int, 5>{});
      default:
        return with_step(std::integral_constant<int, 7>{});
    }
  }

  // Columns `dilation` apart read each other's pixels.
  template <int taps, int step>
  void gather_columns(const std::vector<Source>& rows, Pixel* to) const {
    simd::dispatch_for<Pixel>([&, to ](auto target) __attribute__((always_inline)) {
      using Target = decltype(target);
      constexpr std::int64_t group = kColumnsAtOnce<Target>;
      const std::int64_t offsets = row_map_.offsets() * column_map_.offsets();
      const std::int64_t dilation = pattern_.dilation, inputs = input_.shape(2);
      constexpr std::int64_t kFar = 1 << 21;  // bytes that no core's own cache holds
      const bool is_far = input_.size() * input_.itemsize() >= kFar;
      std::vector<RowRead<Pixel>> reads(rows.size());
      const auto gather_group = [&](std::int64_t w) __attribute__((always_inline)) {
        const std::int64_t first = *pattern_.first + w * step;
        const std::int64_t count = std::min(group, divide_up(columns() - w, dilation));
        for (std::size_t i = 0; i < rows.size(); ++i) {
          reads[i] = {rows[i].pixels + first * channels(),
                      filters_.of(0) + rows[i].offset * PackedFilters<Sum<Pixel>>::kBlock,
                      is_far && rows[i].is_new};
        }
        const std::int64_t inside = first < inputs ? divide_up(inputs - first, dilation) : 0;
        const std::int64_t end = std::min((count - 1) * step + taps, inside);
        const ColumnRead read{channels(),
                              dilation * channels(),
                              offsets * PackedFilters<Sum<Pixel>>::kBlock,
                              static_cast<int>(first < 0 ? divide_up(-first, dilation) : 0),
                              static_cast<int>(end),
                              static_cast<int>(count),
                              pattern_.is_reversed,
                              is_far};
        convolve_columns<Target, taps, step, Pixel>(reads, read, bias_.as<const Sum<Pixel>>(),
                                                    to + w * channels());
      };
      for (std::int64_t phase = 0; phase < std::min(dilation, columns()); ++phase) {
        for (std::int64_t w = phase; w < columns(); w += group * dilation) gather_group(w);
      }
    });
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
    const std::int64_t result_step = pattern_.period * channels(),
                       input_step = pattern_.step * channels();
    const std::int64_t between = pattern_.step > 1 ? channels() : 0;
    dispatch_for<Pixel>([&, to ](auto target) __attribute__((always_inline)) {
      simd::for_each_group<decltype(target), 4 / group, Sum<Pixel>>(
          channels(), [&](std::int64_t c, auto x) __attribute__((always_inline)) {
            using X = decltype(x);
            X sums[group];
#pragma GCC unroll 4
            for (int j = 0; j < group; ++j) load_group(bias_.as<const Sum<Pixel>>() + c, sums[j]);
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
  const PackedFilters<Sum<Pixel>>& filters_;
  const AxisIndexMap &row_map_, &column_map_;
  const ColumnPattern pattern_;
  const Array result_, bias_;
  std::vector<bool> starts_group_;  // by column
};

}  // namespace renga::convolution::depthwise
