#include "ops/elementwise/elementwise.h"

#include <array>
#include <atomic>
#include <limits>
#include <numbers>
#include <type_traits>

#include "devices/gil_release.h"
#include "ops/elementwise/integer_maps.h"
#include "ops/elementwise/maps.h"
#include "simd/blocked_loop.h"

namespace renga {
namespace {

// xsimd takes the exponent of a subnormal double for that of the least normal one. Subnormal
// numbers are multiplied by 2^54 first, whose logarithm is `shift`.
template <class V, class F>
V logarithm(V v, double shift, F log) {
  using C = typename V::value_type;
  if constexpr (std::is_same_v<C, double>) {
    const auto subnormal = v < V(std::numeric_limits<C>::min());
    const V y = log(V(xsimd::select(subnormal, v * V(0x1p54), v)));
    return xsimd::select(subnormal, y - V(shift), y);
  } else {
    return log(v);
  }
}

template <Unary map, class V>
V unary_of_batch(V v, V p, V q) {
  const auto f = [=](V x) { return maps::unary<map>(x, p, q); };
  if constexpr (map == Unary::log) return logarithm(v, 54 * std::numbers::ln2, f);
  if constexpr (map == Unary::log2) return logarithm(v, 54, f);
  if constexpr (map == Unary::log10) {
    return logarithm(v, 54 * std::numbers::ln2 / std::numbers::ln10, f);
  }
  return f(v);
}

template <Unary map, class T>
[[gnu::noinline]] void float_unary(Compute<T> p, Compute<T> q, const T* x, T* y, std::int64_t n) {
  using C = Compute<T>;
  using V = xsimd::batch<C>;
  if constexpr (maps::is_of_numbers(map)) {
    for (std::int64_t i = 0; i < n; ++i) y[i] = T(maps::unary<map>(C(x[i]), p, q));
  } else if constexpr (std::is_same_v<C, float> && maps::is_of_float_batches(map)) {
    simd::map_vectors(
        y, n,
        [=]<class F>(const F& v)
            __attribute__((always_inline)) { return maps::unary<map>(v, F(p), F(q)); },
        x);
  } else {
    simd::map_batches(x, y, n,
                      [vp = V(p), vq = V(q)](V v) { return unary_of_batch<map>(v, vp, vq); });
  }
}

template <Binary map, class T>
[[gnu::noinline]] void float_binary(Compute<T> p, const T* a, const T* b, T* y, std::int64_t n) {
  using C = Compute<T>;
  using V = xsimd::batch<C>;
  if constexpr (maps::is_of_numbers(map)) {
    for (std::int64_t i = 0; i < n; ++i) y[i] = T(maps::binary<map>(C(a[i]), C(b[i]), p));
  } else if constexpr (std::is_same_v<C, float> && maps::is_of_float_batches(map)) {
    simd::map_vectors(
        y, n,
        [=]<class F>(const F& u, const F& v)
            __attribute__((always_inline)) { return maps::binary<map>(u, v, F(p)); },
        a, b);
  } else {
    simd::map_batches(a, b, y, n, [vp = V(p)](V u, V v) { return maps::binary<map>(u, v, vp); });
  }
}

// Faults of integer divisions in all blocks of a call.
struct DivisionFaults {
  std::atomic<bool> by_zero{false}, overflow{false};

  void add(integers::Fault fault) {
    if (fault == integers::Fault::by_zero) by_zero = true;
    if (fault == integers::Fault::overflow) overflow = true;
  }
  void report() const {
    if (arithmetic_warning == nullptr) return;
    if (by_zero) arithmetic_warning("divide by zero encountered in floor_divide");
    if (overflow) arithmetic_warning("overflow encountered in floor_divide");
  }
};

// Plain loops, which the compiler vectorizes.
template <Unary map, class T>
void integer_unary(const T* x, T* y, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = integers::unary<map>(x[i]);
}

template <Binary map, class T>
void integer_binary(const T* a, const T* b, T* y, std::int64_t n, DivisionFaults& faults) {
  if constexpr (map == Binary::floor_divide) {
    for (std::int64_t i = 0; i < n; ++i) {
      auto fault = integers::Fault::none;
      y[i] = integers::floor_divide(a[i], b[i], fault);
      if (fault != integers::Fault::none) [[unlikely]]
        faults.add(fault);
    }
  } else {
    for (std::int64_t i = 0; i < n; ++i) y[i] = integers::binary<map>(a[i], b[i]);
  }
}

// Elementary operations per element, for parallel_walk.
std::int64_t cost_of(Unary map) {
  if (map == Unary::power || map == Unary::power_of) return 40;
  return map < Unary::exp || map == Unary::relu || map == Unary::leaky_relu ? 1 : 8;
}

void unary_cpu(Unary map, double p, double q, const Array& x, const Array& y) {
  const GilRelease work(y.size());
  visit_dtype(y.dtype(), [&]<class T>(Type<T>) {
    using C = Compute<T>;
    simd::map_blocks<T>(x, y, cost_of(map), [=]<class S>(const S* in, S* out, std::int64_t n) {
      if constexpr (std::is_floating_point_v<C>) {
        maps::visit_map<maps::kLastUnary>(
            map, [=]<Unary m>() { float_unary<m, S>(C(p), C(q), in, out, n); });
      } else if constexpr (!std::is_same_v<C, bool>) {
        maps::visit_map<integers::kLastUnary>(map,
                                              [=]<Unary m>() { integer_unary<m>(in, out, n); });
      }
    });
  });
}

void binary_cpu(Binary map, double p, const Array& a, const Array& b, const Array& y) {
  DivisionFaults faults;
  {
    const GilRelease work(y.size());
    visit_dtype(y.dtype(), [&]<class T>(Type<T>) {
      using C = Compute<T>;
      simd::map_blocks<T>(
          a, b, y, 1, [=, &faults]<class S>(const S* in_a, const S* in_b, S* out, std::int64_t n) {
            if constexpr (std::is_floating_point_v<C>) {
              maps::visit_map<maps::kLastBinary>(
                  map, [=]<Binary m>() { float_binary<m, S>(C(p), in_a, in_b, out, n); });
            } else if constexpr (!std::is_same_v<C, bool>) {
              maps::visit_map<integers::kLastBinary>(
                  map, [=, &faults]<Binary m>() { integer_binary<m>(in_a, in_b, out, n, faults); });
            }
          });
    });
  }
  faults.report();
}

// y[i] = condition[i] ? a[i] : b[i] for adjoining elements; a step of 0 repeats one element. The
// compiler makes vectors of it, but not if the condition is a bool.
template <int a_step, int b_step, class T>
void select_run(const std::uint8_t* condition, const T* a, const T* b, T* __restrict y,
                std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    const T first = a[a_step * i], second = b[b_step * i];
    y[i] = condition[i] != 0 ? first : second;
  }
}

// T is any type of the elements' size: they are only copied.
template <class T>
void select_loop(const Array& condition, const Array& a, const Array& b, const Array& y) {
  const auto loop = make_loop<4>({&y, &condition, &a, &b});
  parallel_walk(loop, 2, [](std::int64_t n, const auto& p, const auto& s) {
    constexpr std::int64_t item = sizeof(T);
    const bool adjoin =
        s[0] == item && s[1] == 1 && (s[2] == item || s[2] == 0) && (s[3] == item || s[3] == 0);
    if (adjoin) {
      const auto run = s[2] == 0 ? (s[3] == 0 ? select_run<0, 0, T> : select_run<0, 1, T>)
                                 : (s[3] == 0 ? select_run<1, 0, T> : select_run<1, 1, T>);
      return run(reinterpret_cast<const std::uint8_t*>(p[1]), reinterpret_cast<const T*>(p[2]),
                 reinterpret_cast<const T*>(p[3]), reinterpret_cast<T*>(p[0]), n);
    }
    for (std::int64_t i = 0; i < n; ++i) {
      const bool first = *reinterpret_cast<const bool*>(p[1] + i * s[1]);
      const std::byte* from = first ? p[2] + i * s[2] : p[3] + i * s[3];
      *reinterpret_cast<T*>(p[0] + i * s[0]) = *reinterpret_cast<const T*>(from);
    }
  });
}

void select_cpu(const Array& condition, const Array& a, const Array& b, const Array& y) {
  const GilRelease work(y.size());
  visit_bits(y.itemsize(), [&]<class T>(Type<T>) { select_loop<T>(condition, a, b, y); });
}

[[maybe_unused]] const bool registered =
    elementwise_kernels.add(0, {unary_cpu, binary_cpu, select_cpu});

}  // namespace
}  // namespace renga
