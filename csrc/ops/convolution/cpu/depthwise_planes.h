// Depthwise forward pass of images whose channels are planes: a vector's channels at a time, whose
// pixels are interleaved into a buffer that stays in the cache.
#pragma once

#include <algorithm>
#include <vector>

#include "devices/parallel.h"
#include "devices/rounding.h"
#include "ops/convolution/cpu/depthwise_gather.h"
#include "simd/first_floats.h"
#include "simd/transpose.h"

namespace renga::convolution::depthwise {

// x is (N, C, H, W), row-major; y is (N, H', W', C), row-major. The bias has one number per
// channel.
template <class Pixel>
class PlaneKernel {
 public:
  PlaneKernel(const Problem& problem, const Array& x, const PackedFilters<float>& filters,
              const Array& bias, const Array& y)
      : x_(x),
        filters_(filters),
        bias_(bias),
        y_(y),
        window_(problem.window),
        kernel_rows_(problem.W.shape(2)),
        kernel_columns_(problem.W.shape(3)) {}

  void run() const {
    simd::dispatch_for<Pixel>([this](auto target)
                                  __attribute__((always_inline)) { run_on<decltype(target)>(); });
  }

 private:
  // Rows of y of one image, and the channels from `channel` on.
  struct Part {
    std::int64_t sample, channel, begin, end;
  };

  std::int64_t channels() const { return x_.shape(1); }
  std::int64_t rows() const { return y_.shape(1); }
  std::int64_t columns() const { return y_.shape(2); }
  std::int64_t first_row_of(std::int64_t row) const {
    return row * window_.stride[0] - window_.pad[0];
  }
  // The rows and columns of x, or of the padding, that so many rows and columns of y read.
  std::int64_t rows_read(std::int64_t count) const {
    return (count - 1) * window_.stride[0] + (kernel_rows_ - 1) * window_.dilate[0] + 1;
  }
  std::int64_t columns_read() const {
    return (columns() - 1) * window_.stride[1] + (kernel_columns_ - 1) * window_.dilate[1] + 1;
  }

  template <class Target>
  [[gnu::always_inline]] void run_on() const {
    constexpr std::int64_t width = Target::width, kPixels = 4096;  // of the buffer
    const std::int64_t blocks = divide_up(channels(), width);
    const std::int64_t cuts =
        std::clamp<std::int64_t>(rows_read(rows()) * columns_read() / kPixels, 1, rows());
    const std::int64_t cost = rows() * columns() * kernel_rows_ * kernel_columns_ / cuts;
    parallel_for(x_.shape(0) * blocks * cuts, cost, [&](std::int64_t begin, std::int64_t end) {
      std::vector<float> pixels;
      for (std::int64_t i = begin; i < end; ++i) {
        const std::int64_t cut = i % cuts, block = i / cuts % blocks;
        const Part part{i / cuts / blocks, block * width, cut * rows() / cuts,
                        (cut + 1) * rows() / cuts};
        pixels.resize(
            static_cast<std::size_t>(rows_read(part.end - part.begin) * columns_read() * width));
        simd::run_on<Target>([&](auto) __attribute__((always_inline)) {
          interleave<Target>(part, pixels.data());
          convolve<Target>(part, pixels.data());
        });
      }
    });
  }

  // Writes what the part reads, with zeros for the padding.
  template <class Target>
  [[gnu::always_inline]] void interleave(const Part& part, float* to) const {
    constexpr std::int64_t width = Target::width;
    const std::int64_t height = x_.shape(2), inside = x_.shape(3), size = columns_read();
    const std::int64_t first = first_row_of(part.begin), left = window_.pad[1];
    const auto* const planes =
        x_.as<const Pixel>() + (part.sample * channels() + part.channel) * height * inside;
    const std::int64_t count = std::clamp<std::int64_t>(size - left, 0, inside);
    for (std::int64_t i = 0; i < rows_read(part.end - part.begin); ++i, to += size * width) {
      const std::int64_t row = first + i;
      if (row < 0 || row >= height) {
        std::fill_n(to, size * width, 0.f);
        continue;
      }
      std::fill_n(to, std::min(left, size) * width, 0.f);
      const Pixel* const from = planes + row * inside;
      // The last square may overlap the one before.
      for (std::int64_t j = 0; j < count; j += width) {
        const std::int64_t at = std::clamp<std::int64_t>(count - width, 0, j);
        const auto n = static_cast<int>(std::min(width, count - at));
        interleave_square<Target>(from + at, part.channel, n, to + (left + at) * width);
      }
      for (std::int64_t j = left + count; j < size; ++j) std::fill_n(to + j * width, width, 0.f);
    }
  }

  // n pixels of the channels from c on.
  template <class Target>
  [[gnu::always_inline]] void interleave_square(const Pixel* from, std::int64_t c, int n,
                                                float* to) const {
    constexpr int width = Target::width;
    const std::int64_t plane = x_.shape(2) * x_.shape(3);
    const auto present = std::min<std::int64_t>(width, channels() - c);
    simd::Floats<Target> square[width] = {};
#pragma GCC unroll 16
    for (int k = 0; k < width; ++k) {
      if (k < present) square[k] = load_pixels<Target>(from + k * plane, n);
    }
    simd::transpose<Target>(square);
#pragma GCC unroll 16
    for (int k = 0; k < width; ++k) {
      if (k < n) simd::store_floats<Target>(square[k], to + k * width);
    }
  }

  template <class Target>
  [[gnu::always_inline]] static simd::Floats<Target> load_pixels(const Pixel* from, int n) {
    if (n == Target::width) return simd::load_floats<Target>(from);
    if constexpr (std::is_same_v<Pixel, float>) {
      return simd::load_first<Target>(from, n);
    } else {
      Pixel some[Target::width] = {};
      std::copy_n(from, n, some);
      return simd::load_floats<Target>(some);
    }
  }

  template <class Target>
  [[gnu::always_inline]] void convolve(const Part& part, const float* pixels) const {
    const std::int64_t last = columns() - 4;
    for (std::int64_t row = part.begin; row < part.end; ++row) {
      const float* const from =
          pixels + (row - part.begin) * window_.stride[0] * columns_read() * Target::width;
      Pixel* const to =
          y_.as<Pixel>() + ((part.sample * rows() + row) * columns()) * channels() + part.channel;
      std::int64_t w = 0;
      for (; w + 8 <= columns(); w += 8) convolve_group<Target, 8>(part, from, w, to);
      // The last group may overlap the one before.
      if (last >= 0) {
        for (; w < columns(); w += 4) convolve_group<Target, 4>(part, from, std::min(w, last), to);
      }
      for (; w < columns(); ++w) convolve_group<Target, 1>(part, from, w, to);
    }
  }

  // `group` adjoining columns of a row of y, from w on.
  template <class Target, int group>
  [[gnu::always_inline]] void convolve_group(const Part& part, const float* row, std::int64_t w,
                                             Pixel* to) const {
    constexpr std::int64_t width = Target::width;
    const std::int64_t step = window_.stride[1] * width, reach = window_.dilate[1] * width;
    const std::int64_t down = window_.dilate[0] * columns_read() * width;
    simd::Floats<Target> sums[group];
    const simd::Floats<Target> initial =
        simd::load_floats<Target>(bias_.as<const float>() + part.channel);
#pragma GCC unroll 8
    for (int j = 0; j < group; ++j) sums[j] = initial;
    const float* weights = filters_.of(part.channel);
    row += w * step;
    for (std::int64_t i = 0; i < kernel_rows_; ++i, row += down) {
      const float* from = row;
      for (std::int64_t k = 0; k < kernel_columns_; ++k, from += reach) {
        const auto weight = simd::load_floats<Target>(weights);
#pragma GCC unroll 8
        for (int j = 0; j < group; ++j) {
          sums[j] += weight * simd::load_floats<Target>(from + j * step);
        }
        weights += PackedFilters<float>::kBlock;
      }
    }
    const std::int64_t present = std::min(width, channels() - part.channel);
#pragma GCC unroll 8
    for (int j = 0; j < group; ++j) {
      Pixel* const pixel = to + (w + j) * channels();
      __builtin_prefetch(pixel + group * channels(), 1);  // too far for the hardware prefetcher
      if (present == width) {
        simd::store_floats<Target>(sums[j], pixel);
      } else {
        Pixel some[width];
        simd::store_floats<Target>(sums[j], some);
        std::copy_n(some, present, pixel);
      }
    }
  }

  const Array x_;
  const PackedFilters<float>& filters_;
  const Array bias_, y_;
  const Window& window_;
  const std::int64_t kernel_rows_, kernel_columns_;
};

}  // namespace renga::convolution::depthwise
