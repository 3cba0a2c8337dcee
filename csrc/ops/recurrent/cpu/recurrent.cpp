#include "devices/gil_release.h"
#include "ops/recurrent/kernels.h"
#include "simd/blocked_loop.h"

namespace renga {
namespace {

// Elementary operations per unit of a cell, for parallel_walk.
constexpr std::int64_t kCost = 48;

// Calls f(in, out) with batches of the In + Out operands that cover a run of n elements. The rest
// of a run is padded to a batch, so that the result of an element does not depend on its position.
template <class T, int In, int Out, class F>
void map_run(std::int64_t n, const std::array<std::byte*, Out + In>& p,
             const std::array<std::int64_t, Out + In>& steps, const F& f) {
  using C = Compute<T>;
  using V = xsimd::batch<C>;
  constexpr auto width = static_cast<std::int64_t>(V::size);
  constexpr std::int64_t block = 64;
  V in[In], out[Out];
  std::int64_t i = 0;
  if (std::ranges::all_of(steps, [](std::int64_t s) { return s == sizeof(T); })) {
    for (; i + width <= n; i += width) {
      for (int k = 0; k < In; ++k)
        in[k] = simd::load<V>(reinterpret_cast<const T*>(p[Out + k]) + i);
      f(in, out);
      for (int k = 0; k < Out; ++k) simd::store(out[k], reinterpret_cast<T*>(p[k]) + i);
    }
  }
  alignas(64) C staged[Out + In][block] = {};
  for (; i < n; i += block) {
    const std::int64_t m = std::min(block, n - i);
    for (int k = Out; k < Out + In; ++k)
      simd::gather<T>(p[k] + i * steps[k], steps[k], m, staged[k]);
    for (std::int64_t j = 0; j < m; j += width) {
      for (int k = 0; k < In; ++k) in[k] = V::load_aligned(staged[Out + k] + j);
      f(in, out);
      for (int k = 0; k < Out; ++k) out[k].store_aligned(staged[k] + j);
    }
    for (int k = 0; k < Out; ++k) simd::scatter<T>(staged[k], p[k] + i * steps[k], steps[k], m);
  }
}

struct CpuMap {
  // The same over whole arrays of one shape, results first.
  template <std::size_t N, class Cell>
  static void map_units(const std::array<Array, N>& operands, const Cell& cell) {
    static_assert(N == Cell::inputs + Cell::outputs);
    std::array<const Array*, N> all;
    for (std::size_t k = 0; k < N; ++k) all[k] = &operands[k];
    const GilRelease work(kCost / 8 * operands[0].size());
    visit_dtype(operands[0].dtype(), [&]<class T>(Type<T>) {
      if constexpr (is_floating<T>) {
        parallel_walk(make_loop<N>(all), kCost, [&](std::int64_t n, const auto& p, const auto& s) {
          map_run<T, Cell::inputs, Cell::outputs>(n, p, s, cell);
        });
      }
    });
  }
};

[[maybe_unused]] const bool registered = recurrent_kernels.add(0, CellKernels<CpuMap>::table);

}  // namespace
}  // namespace renga
