// Gradients of filters of which each channel has its own.
#pragma once

#include <algorithm>

#include "devices/parallel.h"
#include "ops/convolution/cpu/index_map.h"
#include "simd/vector_group.h"
#include "tensor/views.h"

namespace renga::depthwise {

using simd::add_product, simd::dispatch, simd::load_group, simd::store_group;

// Gradients of the filters (taps, C), from images (N, H, W, C), row-major.
template <class Pixel>
class WeightGrad {
 public:
  WeightGrad(const Array& gy, const Array& x, const TapMeetings& meetings, const Window& window)
      : gy_(gy),
        x_(x),
        down_(meetings.down),
        across_(meetings.across),
        apart_(window.dilate[1]),
        step_(window.stride[1]) {
    // Columns of y for which all taps of a row meet a pixel.
    const auto all_meet = [&](std::int64_t w) {
      const std::int64_t* const at = across_.at(w);
      return std::find(at, at + across_.taps(), Meetings::kNone) == at + across_.taps();
    };
    while (first_ < columns() && !all_meet(first_)) ++first_;
    last_ = first_;
    while (last_ < columns() && all_meet(last_)) ++last_;
  }

  // Samples are added up in groups, and groups one after the other, whatever the number of threads.
  Array run() const {
    const std::int64_t samples = gy_.shape(0), groups = std::min<std::int64_t>(samples, 16);
    const std::int64_t size = down_.taps() * across_.taps() * channels();
    const Array sums = zeros({groups, size}, Dtype::float32);
    parallel_for(groups, samples / groups * size * columns(),
                 [&](std::int64_t begin, std::int64_t end) {
                   for (; begin < end; ++begin) {
                     for (std::int64_t n = begin * samples / groups;
                          n < (begin + 1) * samples / groups; ++n) {
                       add_sample(n, sums.as<float>() + begin * size);
                     }
                   }
                 });
    float* const total = sums.as<float>();
    for (std::int64_t g = 1; g < groups; ++g) {
      for (std::int64_t i = 0; i < size; ++i) total[i] += total[g * size + i];
    }
    return reshape_view(slice_view(sums, 0, 0, 1), {down_.taps() * across_.taps(), channels()});
  }

 private:
  // Columns from what is fetched to what is added up.
  static constexpr std::int64_t kAhead = 8;

  std::int64_t columns() const { return gy_.shape(2); }
  std::int64_t channels() const { return gy_.shape(3); }

  // The pixels of a column are too far from the next column's for the hardware to see them coming.
  template <class X>
  [[gnu::always_inline]] static void prefetch(const Pixel* pixels) {
    constexpr int line = 64 / static_cast<int>(sizeof(Pixel));
    constexpr int count = static_cast<int>(sizeof(X) / sizeof(float));
    for (int i = 0; i < count; i += line) __builtin_prefetch(pixels + i);
  }

  void add_sample(std::int64_t n, float* sums) const {
    for (std::int64_t h = 0; h < gy_.shape(1); ++h) {
      const Pixel* const gy =
          gy_.as<const Pixel>() + (n * gy_.shape(1) + h) * columns() * channels();
      for (std::int64_t k = 0; k < down_.taps(); ++k) {
        const std::int64_t at = down_.at(h)[k];
        if (at == Meetings::kNone) continue;
        const Pixel* const x =
            x_.as<const Pixel>() + (n * x_.shape(1) + at) * x_.shape(2) * channels();
        add_row(gy, x, sums + k * across_.taps() * channels());
      }
    }
  }

  // What a row of gy and one of x add to a row of taps.
  void add_row(const Pixel* gy, const Pixel* x, float* sums) const {
    dispatch<float>([&](auto target) __attribute__((always_inline)) {
      using Target = decltype(target);
      std::int64_t k = 0;
      for (; k + 3 <= across_.taps(); k += 3) add_taps<Target, 3>(k, gy, x, sums);
      for (; k < across_.taps(); ++k) add_taps<Target, 1>(k, gy, x, sums);
    });
  }

  template <class Target, int together>
  [[gnu::always_inline]] void add_taps(std::int64_t k, const Pixel* gy, const Pixel* x,
                                       float* sums) const {
    simd::for_each_group<Target, 4>(
        channels(), [&](std::int64_t c, auto zero) __attribute__((always_inline)) {
          using X = decltype(zero);
          // A long sum made of short ones is more exact.
          X sum[together] = {};
          const auto add = [&](std::int64_t w) __attribute__((always_inline)) {
            X grad;
            load_group(gy + w * channels() + c, grad);
            for (int t = 0; t < together; ++t) {
              const std::int64_t at = across_.at(w)[k + t];
              if (at == Meetings::kNone) continue;
              X pixel;
              load_group(x + at * channels() + c, pixel);
              add_product(grad, pixel, sum[t]);
            }
          };
          for (std::int64_t w = 0; w < first_; ++w) add(w);
          for (std::int64_t w = first_; w < last_; ++w) {
            X grad;
            load_group(gy + w * channels() + c, grad);
            const std::int64_t at = across_.at(w)[k];
            prefetch<X>(gy + (w + kAhead) * channels() + c);
            prefetch<X>(x + (at + kAhead * step_) * channels() + c);
#pragma GCC unroll 4
            for (int t = 0; t < together; ++t) {
              X pixel;
              load_group(x + (at + t * apart_) * channels() + c, pixel);
              add_product(grad, pixel, sum[t]);
            }
          }
          for (std::int64_t w = last_; w < columns(); ++w) add(w);
#pragma GCC unroll 4
          for (int t = 0; t < together; ++t) {
            float* const to = sums + (k + t) * channels() + c;
            X before;
            load_group(to, before);
            store_group(before + sum[t], to);
          }
        });
  }

  const Array gy_, x_;
  const Meetings &down_, &across_;
  const std::int64_t apart_, step_;  // of x, from tap to tap and from column to column of gy
  std::int64_t first_ = 0, last_ = 0;
};

}  // namespace renga::depthwise
