// Depthwise weight gradient.
#pragma once

#include <algorithm>

#include "devices/parallel.h"
#include "ops/convolution/cpu/depthwise_columns.h"
#include "ops/convolution/cpu/index_map.h"
#include "simd/vector_group.h"
#include "tensor/views.h"

namespace renga::convolution::depthwise {

using simd::add_product, simd::dispatch_for, simd::load_group, simd::store_group;

// Gradients of the filters as (kernel offsets, C), from images (N, rows, columns, C), row-major.
template <class Pixel>
class WeightGradKernel {
 public:
  WeightGradKernel(const Array& gy, const Array& x, const IndexMap& map, const Window& window)
      : gy_(gy),
        x_(x),
        row_map_(map.rows),
        column_map_(map.columns),
        offset_step_(window.dilate[window.dilate.size() - 1]),
        column_step_(window.stride[window.stride.size() - 1]) {
    // The columns of y for which all kernel offsets read inside of the image.
    const auto reads_inside = [&](std::int64_t w) {
      const std::int64_t* const inputs = column_map_.inputs_of(w);
      return std::find(inputs, inputs + column_map_.offsets(), AxisIndexMap::kOutside) ==
             inputs + column_map_.offsets();
    };
    while (first_ < columns() && !reads_inside(first_)) ++first_;
    last_ = first_;
    while (last_ < columns() && reads_inside(last_)) ++last_;
  }

  // Samples are added up in groups, then the groups in order, whatever the number of threads.
  Array run() const {
    const std::int64_t samples = gy_.shape(0), groups = std::min<std::int64_t>(samples, 16);
    const std::int64_t size = row_map_.offsets() * column_map_.offsets() * channels();
    const Array sums = zeros({groups, size}, dtype_of<Number>);
    parallel_for(groups, samples / groups * size * columns(),
                 [&](std::int64_t begin, std::int64_t end) {
                   for (; begin < end; ++begin) {
                     for (std::int64_t n = begin * samples / groups;
                          n < (begin + 1) * samples / groups; ++n) {
                       add_sample(n, sums.as<Number>() + begin * size);
                     }
                   }
                 });
    Number* const total = sums.as<Number>();
    for (std::int64_t g = 1; g < groups; ++g) {
      for (std::int64_t i = 0; i < size; ++i) total[i] += total[g * size + i];
    }
    return reshape_view(slice_view(sums, 0, 0, 1),
                        {row_map_.offsets() * column_map_.offsets(), channels()});
  }

 private:
  using Number = Sum<Pixel>;

  // Pixels are prefetched so many columns ahead.
  static constexpr std::int64_t kPrefetchDistance = 8;

  std::int64_t columns() const { return gy_.shape(2); }
  std::int64_t channels() const { return gy_.shape(3); }

  // Columns are too far apart for the hardware prefetcher.
  template <class X>
  [[gnu::always_inline]] static void prefetch(const Pixel* pixels) {
    constexpr int line = 64 / static_cast<int>(sizeof(Pixel));
    constexpr int count = static_cast<int>(sizeof(X) / sizeof(Number));
    for (int i = 0; i < count; i += line) __builtin_prefetch(pixels + i, 0, 2);
  }

  void add_sample(std::int64_t n, Number* sums) const {
    for (std::int64_t h = 0; h < gy_.shape(1); ++h) {
      const Pixel* const gy =
          gy_.as<const Pixel>() + (n * gy_.shape(1) + h) * columns() * channels();
      for (std::int64_t k = 0; k < row_map_.offsets(); ++k) {
        const std::int64_t input = row_map_.inputs_of(h)[k];
        if (input == AxisIndexMap::kOutside) continue;
        const Pixel* const x =
            x_.as<const Pixel>() + (n * x_.shape(1) + input) * x_.shape(2) * channels();
        add_row(gy, x, sums + k * column_map_.offsets() * channels());
      }
    }
  }

  // Adds what a row of gy and a row of x contribute to a row of kernel offsets.
  void add_row(const Pixel* gy, const Pixel* x, Number* sums) const {
    dispatch_for<Pixel>([&](auto target) __attribute__((always_inline)) {
      using Target = decltype(target);
      std::int64_t k = 0;
      for (; k + 3 <= column_map_.offsets(); k += 3) add_offsets<Target, 3>(k, gy, x, sums);
      for (; k < column_map_.offsets(); ++k) add_offsets<Target, 1>(k, gy, x, sums);
    });
  }

  template <class Target, int group>
  [[gnu::always_inline]] void add_offsets(std::int64_t k, const Pixel* gy, const Pixel* x,
                                          Number* sums) const {
    simd::for_each_group<Target, 4, Number>(
        channels(), [&](std::int64_t c, auto zero) __attribute__((always_inline)) {
          using X = decltype(zero);
          // Short sums that are added up are more exact than one long sum.
          X sum[group] = {};
          const auto add = [&](std::int64_t w) __attribute__((always_inline)) {
            X grad;
            load_group(gy + w * channels() + c, grad);
            for (int t = 0; t < group; ++t) {
              const std::int64_t input = column_map_.inputs_of(w)[k + t];
              if (input == AxisIndexMap::kOutside) continue;
              X pixel;
              load_group(x + input * channels() + c, pixel);
              add_product(grad, pixel, sum[t]);
            }
          };
          for (std::int64_t w = 0; w < first_; ++w) add(w);
          for (std::int64_t w = first_; w < last_; ++w) {
            X grad;
            load_group(gy + w * channels() + c, grad);
            const std::int64_t input = column_map_.inputs_of(w)[k];
            prefetch<X>(gy + (w + kPrefetchDistance) * channels() + c);
            prefetch<X>(x + (input + kPrefetchDistance * column_step_) * channels() + c);
#pragma GCC unroll 4
            for (int t = 0; t < group; ++t) {
              X pixel;
              load_group(x + (input + t * offset_step_) * channels() + c, pixel);
              add_product(grad, pixel, sum[t]);
            }
          }
          for (std::int64_t w = last_; w < columns(); ++w) add(w);
#pragma GCC unroll 4
          for (int t = 0; t < group; ++t) {
            Number* const to = sums + (k + t) * channels() + c;
            X before;
            load_group(to, before);
            store_group(before + sum[t], to);
          }
        });
  }

  const Array gy_, x_;
  const AxisIndexMap &row_map_, &column_map_;
  // Columns of x between kernel offsets, and between columns of gy.
  const std::int64_t offset_step_, column_step_;
  std::int64_t first_ = 0, last_ = 0;  // columns of y that read inside only
};

}  // namespace renga::convolution::depthwise
