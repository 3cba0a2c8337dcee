#include "devices/gil_release.h"
#include "ops/recurrent/kernels.h"
#include "simd/blocked_loop.h"
#include "simd/elementary.h"

namespace renga {
namespace {

// Elementary operations per unit of a cell, for parallel_walk.
constexpr std::int64_t kCost = 48;

// Runs are staged in blocks of so many units.
constexpr std::int64_t kBlock = 64;

// An LSTM's gates are side by side for each unit.
constexpr int kGates = 4;

template <class T, std::size_t N>
bool are_interleaved(const std::array<std::byte*, N>& p, const std::array<std::int64_t, N>& steps,
                     int first, int end) {
  if (first + kGates > end) return false;
  for (int k = 0; k < kGates; ++k) {
    if (p[first + k] != p[first] + k * sizeof(T) || steps[first + k] != kGates * sizeof(T)) {
      return false;
    }
  }
  return true;
}

// Which operands are gates side by side.
enum class Gate : std::uint8_t { none, first, other };
template <class T, std::size_t N>
std::array<Gate, N> find_gates(const std::array<std::byte*, N>& p,
                               const std::array<std::int64_t, N>& steps, int outputs) {
  std::array<Gate, N> gates{};
  constexpr int count = N;
  for (int k = 0; k + kGates <= count; ++k) {
    if (gates[k] == Gate::none && are_interleaved<T>(p, steps, k, k < outputs ? outputs : count)) {
      gates[k] = Gate::first;
      std::fill_n(gates.begin() + k + 1, kGates - 1, Gate::other);
    }
  }
  return gates;
}

// Loops of a form that the compiler vectorizes.
template <class T>
void split_gates(const T* __restrict from, std::int64_t n, Compute<T> (*__restrict to)[kBlock]) {
  for (std::int64_t i = 0; i < n; ++i) {
    for (int k = 0; k < kGates; ++k) to[k][i] = static_cast<Compute<T>>(from[kGates * i + k]);
  }
}
template <class T>
void join_gates(const Compute<T> (*__restrict from)[kBlock], std::int64_t n, T* __restrict to) {
  for (std::int64_t i = 0; i < n; ++i) {
    for (int k = 0; k < kGates; ++k) to[kGates * i + k] = T(from[k][i]);
  }
}

// Calls f(in, out) with a Target's vectors of the In + Out operands that cover a run of n elements.
// The rest of a run is padded to a vector, so that the result of an element does not depend on its
// position.
template <class Target, class T, int In, int Out, class F>
[[gnu::always_inline]] inline void map_on(std::int64_t n, const std::array<std::byte*, Out + In>& p,
                                          const std::array<std::int64_t, Out + In>& steps,
                                          const F& f) {
  using C = Compute<T>;
  using V = simd::Vector<Target, C>;
  V in[In], out[Out];
  std::int64_t i = 0;
  if (std::ranges::all_of(steps, [](std::int64_t s) { return s == sizeof(T); })) {
    for (; i + V::width <= n; i += V::width) {
      for (int k = 0; k < In; ++k) in[k] = V(V::load(reinterpret_cast<const T*>(p[Out + k]) + i));
      f(in, out);
      for (int k = 0; k < Out; ++k) V::store(out[k], reinterpret_cast<T*>(p[k]) + i);
    }
  }
  if (i == n) return;
  const std::array<Gate, Out + In> gates = find_gates<T>(p, steps, Out);
  alignas(64) C staged[Out + In][kBlock] = {};
  for (; i < n; i += kBlock) {
    const std::int64_t m = std::min(kBlock, n - i);
    for (int k = Out; k < Out + In; ++k) {
      const std::byte* const from = p[k] + i * steps[k];
      if (gates[k] == Gate::first) {
        split_gates(reinterpret_cast<const T*>(from), m, staged + k);
      } else if (gates[k] == Gate::none) {
        simd::gather<T>(from, steps[k], m, staged[k]);
      }
    }
    for (std::int64_t j = 0; j < m; j += V::width) {
      for (int k = 0; k < In; ++k) in[k] = V(V::load(staged[Out + k] + j));
      f(in, out);
      for (int k = 0; k < Out; ++k) V::store(out[k], staged[k] + j);
    }
    for (int k = 0; k < Out; ++k) {
      std::byte* const to = p[k] + i * steps[k];
      if (gates[k] == Gate::first) {
        join_gates(staged + k, m, reinterpret_cast<T*>(to));
      } else if (gates[k] == Gate::none) {
        simd::scatter<T>(staged[k], to, steps[k], m);
      }
    }
  }
}

template <class T, int In, int Out, class F>
void map_run(std::int64_t n, const std::array<std::byte*, Out + In>& p,
             const std::array<std::int64_t, Out + In>& steps, const F& f) {
  if constexpr (std::is_same_v<Compute<T>, float>) {
    simd::dispatch_for<T>([&](auto target) __attribute__((always_inline)) {
      map_on<decltype(target), T, In, Out>(n, p, steps, f);
    });
  } else {
    map_on<simd::Avx2, T, In, Out>(n, p, steps, f);
  }
}

struct CpuMap {
  static constexpr bool maps_rows = true;

  // Calls the cell for the units of rows of operands, of which `x` is one.
  template <std::size_t N, class Cell>
  static void map_rows(const Array& x, const std::array<UnitRows, N>& operands, const Cell& cell) {
    static_assert(N == Cell::inputs + Cell::outputs);
    const std::int64_t units = x.shape(1);
    const GilRelease work(kCost / 8 * x.size());
    visit_dtype(x.dtype(), [&]<class T>(Type<T>) {
      if constexpr (is_floating<T>) {
        std::array<std::int64_t, N> steps;
        steps.fill(sizeof(T));
        parallel_for(x.shape(0), kCost * units, [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t r = begin; r < end; ++r) {
            std::array<std::byte*, N> p;
            for (std::size_t k = 0; k < N; ++k) p[k] = operands[k].data + r * operands[k].step;
            map_run<T, Cell::inputs, Cell::outputs>(units, p, steps, cell);
          }
        });
      }
    });
  }

  // Calls the cell for the units of whole arrays of one shape, results first.
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
