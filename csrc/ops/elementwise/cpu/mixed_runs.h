// Arrays of float32 and bfloat16 together, a run at a time.
#pragma once

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

#include "simd/blocked_loop.h"
#include "tensor/strided_loop.h"

namespace renga::elementwise_cpu {

// A run of an operand of float32 or bfloat16 as floats, a block at a time.
class FloatRun {
 public:
  FloatRun(const std::byte* data, std::int64_t step, Dtype dtype)
      : data_(data), step_(step), is_half_(dtype == Dtype::bfloat16) {
    if (step == 0) gather(0, 1);
  }
  simd::Rows<const float> at(std::int64_t i, std::int64_t n) {
    if (step_ == 0) return {floats_, 0, 0};
    if (!is_half_ && step_ == sizeof(float)) return {reinterpret_cast<const float*>(data_) + i};
    gather(i, n);
    return {floats_};
  }

 private:
  void gather(std::int64_t i, std::int64_t n) {
    const std::byte* const from = data_ + i * step_;
    is_half_ ? simd::gather<bfloat16>(from, step_, n, floats_)
             : simd::gather<float>(from, step_, n, floats_);
    if (is_half_ && step_ == sizeof(bfloat16)) {  // the next block is read while this is computed
      constexpr std::int64_t kLine = 64;
      for (std::int64_t at = 0; at < n * step_; at += kLine) {
        __builtin_prefetch(from + n * step_ + at);
      }
    }
  }

  const std::byte* data_;
  std::int64_t step_;
  bool is_half_;
  float floats_[simd::kBlock];
};

// map_mixed_runs for n elements, of which those of y adjoin.
template <class Kernel, std::size_t count>
void map_mixed_run(std::int64_t n, std::byte* y, Dtype dtype, const Kernel& kernel,
                   std::array<FloatRun, count>& x) {
  float floats[simd::kBlock];
  for (std::int64_t i = 0; i < n; i += simd::kBlock) {
    const std::int64_t m = std::min(simd::kBlock, n - i);
    const bool is_half = dtype == Dtype::bfloat16;
    float* const to = is_half ? floats : reinterpret_cast<float*>(y) + i;
    std::apply([&](auto&... in) { kernel(in.at(i, m)..., simd::Rows<float>{to}, 1, m); }, x);
    if (is_half) simd::convert(floats, reinterpret_cast<bfloat16*>(y) + i, m);
  }
}

// As simd::map_mixed_blocks, where runs are long: a number that an operand repeats along them is
// not copied. Returns false, and does nothing, if runs are short or those of y have gaps.
template <class Kernel, class... In>
bool map_mixed_runs(const Array& y, std::int64_t cost, const Kernel& kernel, const In&... x) {
  constexpr std::int64_t kShort = 128;
  const auto loop = make_loop<sizeof...(In) + 1>({&y, &x...});
  if (loop.run() < kShort || loop.strides[0].back() != y.itemsize()) return false;
  parallel_walk(loop, cost, [&](std::int64_t n, const auto& p, const auto& s) {
    [&]<std::size_t... k>(std::index_sequence<k...>) {
      std::array in{FloatRun(p[k + 1], s[k + 1], x.dtype())...};
      map_mixed_run(n, p[0], y.dtype(), kernel, in);
    }
    (std::index_sequence_for<In...>());
  });
  return true;
}

}  // namespace renga::elementwise_cpu
