#include "ops/recurrent/recurrent.h"

#include "devices/gil_release.h"
#include "simd/blocked_loop.h"

namespace renga {
namespace {

// Elementary operations per unit of a cell, for parallel_walk.
constexpr std::int64_t kCost = 48;

template <class V>
V logistic(const V& v) {
  return V(1) / (V(1) + xsimd::exp(-v));
}

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

// The same over whole arrays of one shape, results first.
template <int In, int Out, class F>
void map_units(const std::array<Array, Out + In>& operands, const F& f) {
  std::array<const Array*, Out + In> all;
  for (std::size_t k = 0; k < all.size(); ++k) all[k] = &operands[k];
  const GilRelease work(kCost / 8 * operands[0].size());
  visit_dtype(operands[0].dtype(), [&]<class T>(Type<T>) {
    if constexpr (is_floating<T>) {
      parallel_walk(
          make_loop<Out + In>(all), kCost,
          [&](std::int64_t n, const auto& p, const auto& s) { map_run<T, In, Out>(n, p, s, f); });
    }
  });
}

Array gate(const Array& gates, int k) { return select_view(gates, 0, k); }

void lstm_cpu(const Array& gates, const Array& hidden, const Array& c_prev, const Array& active,
              const Array& c, const Array& h) {
  const auto cell = []<class V>(const V& a, const V& i, const V& f, const V& o, const V& before,
                                V* out) {
    out[0] = a * i + f * before;
    out[1] = o * xsimd::tanh(out[0]);
  };
  if (!hidden.defined()) {
    return map_units<5, 2>(
        {c, h, c_prev, gate(gates, 0), gate(gates, 1), gate(gates, 2), gate(gates, 3)},
        [cell]<class V>(const V* in, V* out) {
          cell(xsimd::tanh(in[1]), logistic(in[2]), logistic(in[3]), logistic(in[4]), in[0], out);
        });
  }
  map_units<9, 6>({c, h, gate(active, 0), gate(active, 1), gate(active, 2), gate(active, 3), c_prev,
                   gate(gates, 0), gate(gates, 1), gate(gates, 2), gate(gates, 3), gate(hidden, 0),
                   gate(hidden, 1), gate(hidden, 2), gate(hidden, 3)},
                  [cell]<class V>(const V* in, V* out) {
                    out[2] = xsimd::tanh(in[1] + in[5]);
                    for (int k = 1; k < 4; ++k) out[2 + k] = logistic(in[1 + k] + in[5 + k]);
                    cell(out[2], out[3], out[4], out[5], in[0], out);
                  });
}

template <bool active>
void lstm_grad_units(const std::array<Array, 12>& operands) {
  map_units<7, 5>(operands, []<class V>(const V* in, V* out) {
    const V one(1), c_prev = in[0], gh = in[6];
    const V a = active ? in[1] : xsimd::tanh(in[1]), i = active ? in[2] : logistic(in[2]);
    const V f = active ? in[3] : logistic(in[3]), o = active ? in[4] : logistic(in[4]);
    const V y = xsimd::tanh(a * i + f * c_prev);
    const V gc = in[5] + gh * o * (one - y * y);
    out[0] = gc * f;
    out[1] = gc * i * (one - a * a);
    out[2] = gc * a * i * (one - i);
    out[3] = gc * c_prev * f * (one - f);
    out[4] = gh * y * o * (one - o);
  });
}

void lstm_grad_cpu(const Array& gates, bool active, const Array& c_prev, const Array& gc,
                   const Array& gh, const Array& ggates, const Array& gc_prev) {
  const std::array<Array, 12> operands{gc_prev,
                                       gate(ggates, 0),
                                       gate(ggates, 1),
                                       gate(ggates, 2),
                                       gate(ggates, 3),
                                       c_prev,
                                       gate(gates, 0),
                                       gate(gates, 1),
                                       gate(gates, 2),
                                       gate(gates, 3),
                                       gc,
                                       gh};
  active ? lstm_grad_units<true>(operands) : lstm_grad_units<false>(operands);
}

void gru_cpu(const Array& input, const Array& hidden, const Array& h_prev, const Array& saved,
             const Array& h) {
  map_units<7, 5>(
      {h, gate(saved, 0), gate(saved, 1), gate(saved, 2), gate(saved, 3), h_prev, gate(input, 0),
       gate(input, 1), gate(input, 2), gate(hidden, 0), gate(hidden, 1), gate(hidden, 2)},
      []<class V>(const V* in, V* out) {
        const V r = logistic(in[1] + in[4]), z = logistic(in[2] + in[5]);
        const V a = xsimd::tanh(in[3] + r * in[6]);
        out[1] = r;
        out[2] = z;
        out[3] = a;
        out[4] = in[6];
        out[0] = a + z * (in[0] - a);
      });
}

void gru_grad_cpu(const Array& saved, const Array& h_prev, const Array& gh, const Array& ginput,
                  const Array& ghidden, const Array& gh_prev) {
  map_units<6, 7>({gh_prev, gate(ginput, 0), gate(ginput, 1), gate(ginput, 2), gate(ghidden, 0),
                   gate(ghidden, 1), gate(ghidden, 2), h_prev, gate(saved, 0), gate(saved, 1),
                   gate(saved, 2), gate(saved, 3), gh},
                  []<class V>(const V* in, V* out) {
                    const V one(1), r = in[1], z = in[2], a = in[3], gh = in[5];
                    const V ga = gh * (one - z) * (one - a * a);
                    const V gr = ga * in[4] * r * (one - r);
                    const V gz = gh * (in[0] - a) * z * (one - z);
                    out[0] = gh * z;
                    out[1] = out[4] = gr;
                    out[2] = out[5] = gz;
                    out[3] = ga;
                    out[6] = ga * r;
                  });
}

[[maybe_unused]] const bool registered =
    recurrent_kernels.add(0, {lstm_cpu, lstm_grad_cpu, gru_cpu, gru_grad_cpu});

}  // namespace
}  // namespace renga
