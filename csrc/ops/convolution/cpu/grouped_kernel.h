// Convolution of groups of 2, 4 or 8 channels, a vector's channels at a time. What they read is
// copied to a buffer that stays in the cache.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "devices/parallel.h"
#include "devices/rounding.h"
#include "simd/dispatch.h"
#include "simd/vector.h"
#include "tensor/views.h"

namespace renga::convolution::grouped {

// All passes in one form: pixel i of the result meets pixels i * stride - pad + k * dilate of the
// source, for the elements k of the kernel. In weight gradients, what is called the result here is
// the gradient of y, and read.
struct Geometry {
  Array source, result;  // (N, H, W, C), row-major
  Dims kernel, stride, pad, dilate;

  std::int64_t taps() const { return kernel[0] * kernel[1]; }
};

// The kernels are compiled for vectors of 8 floats or 4 doubles alone, where nothing else is as
// fast.
template <class T>
using Numbers = simd::Vector<simd::Avx2, T>;

// What the channels of a vector, of groups of `size`, multiply as input channel c of their group: a
// vector, or the one number that all share.
template <int size, int c, class T>
[[gnu::always_inline]] inline auto spread(const T* pixel) {
  using L = Numbers<T>;
  if constexpr (size == L::width) {
    return pixel[c];
  } else {
    const typename L::V x = L::load(pixel);
    return [&]<int... lane>(std::integer_sequence<int, lane...>) __attribute__((always_inline)) {
      return typename L::V(__builtin_shufflevector(x, x, (lane / size * size + c)...));
    }
    (std::make_integer_sequence<int, L::width>());
  }
}

// Calls body(integral constant) for 0 to count - 1.
template <int count, class Body>
[[gnu::always_inline]] inline void unrolled(const Body& body) {
  [&]<int... c>(std::integer_sequence<int, c...>) __attribute__((always_inline)) {
    (body(std::integral_constant<int, c>()), ...);
  }
  (std::make_integer_sequence<int, count>());
}

// Groups have `size` channels in the source and in the result, whose numbers are of T.
template <class T, int size>
class Kernel {
 public:
  static constexpr std::int64_t kWidth = Numbers<T>::width;

  explicit Kernel(const Geometry& geometry) : g_(geometry) {}

  // `weights` are (blocks of kWidth channels, taps, input channels of a group, kWidth); the bias
  // has a number for each channel, or is nullptr.
  void convolve(const T* weights, const T* bias) const {
    const std::int64_t cost = rows() * columns() * g_.taps() * size / cuts();
    parallel_for(
        g_.result.shape(0) * blocks() * cuts(), cost, [&](std::int64_t begin, std::int64_t end) {
          std::vector<T> buffer;
          for (std::int64_t i = begin; i < end; ++i) {
            const Part part = part_of(i / cuts() / blocks(), i / cuts() % blocks(), i % cuts());
            fill(part, buffer);
            convolve_part(part, buffer.data(), weights, bias);
          }
        });
  }

  // Returns the gradients of the weights, in their order above. Samples are added up in groups,
  // then the groups in order, whatever the number of threads.
  Array weight_grad() const {
    const std::int64_t samples = g_.source.shape(0), sums = std::min<std::int64_t>(samples, 16);
    const std::int64_t block_size = g_.taps() * size * kWidth;
    const std::int64_t all_blocks = blocks() * block_size;
    const Array all = zeros({sums, all_blocks}, dtype_of<T>);
    parallel_for(sums * blocks(), samples / sums * block_size * rows() * columns() / kWidth,
                 [&](std::int64_t begin, std::int64_t end) {
                   std::vector<T> buffer;
                   for (std::int64_t i = begin; i < end; ++i) {
                     const std::int64_t sum = i / blocks(), block = i % blocks();
                     T* const to = all.as<T>() + i * block_size;
                     for (std::int64_t n = sum * samples / sums; n < (sum + 1) * samples / sums;
                          ++n) {
                       for (std::int64_t cut = 0; cut < cuts(); ++cut) {
                         const Part part = part_of(n, block, cut);
                         fill(part, buffer);
                         add_part(part, buffer.data(), to);
                       }
                     }
                   }
                 });
    T* const total = all.as<T>();
    for (std::int64_t s = 1; s < sums; ++s) {
      for (std::int64_t i = 0; i < all_blocks; ++i) total[i] += total[s * all_blocks + i];
    }
    return slice_view(all, 0, 0, 1);
  }

 private:
  using L = Numbers<T>;
  using V = typename L::V;

  // So many input channels are multiplied in one pass over the pixels.
  static constexpr int kChannels = size < 4 ? size : 4;

  // Rows of the result of one sample, and the block of its channels.
  struct Part {
    std::int64_t sample, block, begin, end;
  };

  std::int64_t channels() const { return g_.result.shape(3); }
  std::int64_t blocks() const { return channels() / kWidth; }
  std::int64_t rows() const { return g_.result.shape(1); }
  std::int64_t columns() const { return g_.result.shape(2); }
  // What so many rows or columns of the result read.
  std::int64_t reach(std::int64_t count, int axis) const {
    return (count - 1) * g_.stride[axis] + (g_.kernel[axis] - 1) * g_.dilate[axis] + 1;
  }
  std::int64_t line_size() const { return reach(columns(), 1) * kWidth; }

  std::int64_t cuts() const {
    constexpr std::int64_t kCached = 1 << 14;  // numbers
    return std::clamp<std::int64_t>(reach(rows(), 0) * line_size() / kCached, 1, rows());
  }
  Part part_of(std::int64_t sample, std::int64_t block, std::int64_t cut) const {
    return {sample, block, cut * rows() / cuts(), (cut + 1) * rows() / cuts()};
  }

  // Copies what the part reads, with zeros for the padding.
  void fill(const Part& part, std::vector<T>& buffer) const {
    const auto& image = g_.source.shape();
    const std::int64_t height = image[1], width = image[2], all = image[3];
    const std::int64_t positions = reach(columns(), 1), count = reach(part.end - part.begin, 0);
    const std::int64_t begin = std::clamp<std::int64_t>(g_.pad[1], 0, positions);
    const std::int64_t end = std::clamp<std::int64_t>(g_.pad[1] + width, begin, positions);
    buffer.resize(static_cast<std::size_t>(count * line_size()));
    T* to = buffer.data();
    const auto clear = [&](std::int64_t pixels) { to = std::fill_n(to, pixels * kWidth, T(0)); };
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t row = part.begin * g_.stride[0] - g_.pad[0] + i;
      if (row < 0 || row >= height) {
        clear(positions);
        continue;
      }
      clear(begin);
      const T* from = g_.source.as<const T>() + part.block * kWidth +
                      ((part.sample * height + row) * width + begin - g_.pad[1]) * all;
      for (std::int64_t j = begin; j < end; ++j, from += all, to += kWidth) {
        L::store(L::load(from), to);
      }
      clear(positions - end);
    }
  }

  // What the channels of a part have in a row of the result.
  T* row_of_result(const Part& part, std::int64_t row) const {
    return g_.result.as<T>() + (part.sample * rows() + row) * columns() * channels() +
           part.block * kWidth;
  }

  void convolve_part(const Part& part, const T* buffer, const T* weights, const T* bias) const {
    weights += part.block * g_.taps() * size * kWidth;
    const V initial = bias == nullptr ? V{} : L::load(bias + part.block * kWidth);
    const std::int64_t last = columns() - 4;
    for (std::int64_t row = part.begin; row < part.end; ++row) {
      const T* const from = buffer + (row - part.begin) * g_.stride[0] * line_size();
      T* const to = row_of_result(part, row);
      std::int64_t w = 0;
      for (; w + 8 <= columns(); w += 8) convolve_group<8>(from, w, weights, initial, to);
      // The last group may overlap the one before.
      if (last >= 0) {
        for (; w < columns(); w += 4)
          convolve_group<4>(from, std::min(w, last), weights, initial, to);
      }
      for (; w < columns(); ++w) convolve_group<1>(from, w, weights, initial, to);
    }
  }

  // `group` adjoining columns of a row of the result, from w on.
  template <int group>
  void convolve_group(const T* line, std::int64_t w, const T* weights, const V& initial,
                      T* to) const {
    const std::int64_t step = g_.stride[1] * kWidth, along = g_.dilate[1] * kWidth;
    const std::int64_t down = g_.dilate[0] * line_size();
    V sums[group];
#pragma GCC unroll 8
    for (int j = 0; j < group; ++j) sums[j] = initial;
    line += w * step;
    for (std::int64_t i = 0; i < g_.kernel[0]; ++i, line += down) {
      const T* pixel = line;
      for (std::int64_t k = 0; k < g_.kernel[1]; ++k, pixel += along) {
#pragma GCC unroll 2
        for (int c = 0; c < size; c += kChannels, weights += kChannels * kWidth) {
          unrolled<kChannels>([&](auto channel) __attribute__((always_inline)) {
            const V weight = L::load(weights + channel * kWidth);
#pragma GCC unroll 8
            for (int j = 0; j < group; ++j) {
              sums[j] += weight * spread<size, channel>(pixel + c + j * step);
            }
          });
        }
      }
    }
#pragma GCC unroll 8
    for (int j = 0; j < group; ++j) {
      L::store(sums[j], to + (w + j) * channels());
    }
  }

  void add_part(const Part& part, const T* buffer, T* to) const {
    for (std::int64_t i = 0; i < g_.kernel[0]; ++i, buffer += g_.dilate[0] * line_size()) {
      std::int64_t k = 0;
      for (; k + 3 <= g_.kernel[1]; k += 3) add_taps<3>(part, buffer, i, k, to);
      for (; k < g_.kernel[1]; ++k) add_taps<1>(part, buffer, i, k, to);
    }
  }

  // Adds what a part contributes to `count` adjoining elements of a row of the kernel.
  template <int count>
  void add_taps(const Part& part, const T* lines, std::int64_t i, std::int64_t k, T* to) const {
    const std::int64_t step = g_.stride[1] * kWidth, along = g_.dilate[1] * kWidth;
    for (int c = 0; c < size; c += kChannels) {
      V sums[count][kChannels] = {};
      for (std::int64_t row = part.begin; row < part.end; ++row) {
        const T* grad = row_of_result(part, row);
        const T* pixel = lines + (row - part.begin) * g_.stride[0] * line_size() + k * along + c;
        for (std::int64_t w = 0; w < columns(); ++w, grad += channels(), pixel += step) {
          const V g = L::load(grad);
#pragma GCC unroll 4
          for (int t = 0; t < count; ++t) {
            unrolled<kChannels>([&](auto channel) __attribute__((always_inline)) {
              sums[t][channel] += g * spread<size, channel>(pixel + t * along);
            });
          }
        }
      }
      T* const first = to + ((i * g_.kernel[1] + k) * size + c) * kWidth;
#pragma GCC unroll 4
      for (int t = 0; t < count; ++t) {
        unrolled<kChannels>([&](auto channel) __attribute__((always_inline)) {
          T* const sum = first + (t * size + channel) * kWidth;
          L::store(L::load(sum) + sums[t][channel], sum);
        });
      }
    }
  }

  const Geometry& g_;
};

}  // namespace renga::convolution::grouped
