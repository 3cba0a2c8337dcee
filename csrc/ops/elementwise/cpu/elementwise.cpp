#include "ops/elementwise/elementwise.h"

#include <array>
#include <atomic>
#include <type_traits>

#include "devices/gil_release.h"
#include "ops/elementwise/integer_maps.h"
#include "ops/elementwise/maps.h"
#include "simd/blocked_loop.h"
#include "simd/elementary.h"

namespace renga {
namespace {

// y = f(x...), f of vectors. Doubles, and functions that xsimd computes, are of one width.
template <bool of_any_width, class T, class F, class... In>
void map_floats(T* y, std::int64_t n, const F& f, const In*... x) {
  if constexpr (of_any_width && std::is_same_v<Compute<T>, float>) {
    simd::map_vectors(y, n, f, x...);
  } else {
    simd::map_on<simd::Avx2>(y, n, f, x...);
  }
}

template <Unary map, class T>
[[gnu::noinline]] void float_unary(Compute<T> p, Compute<T> q, const T* x, T* y, std::int64_t n) {
  map_floats<maps::is_of_any_width(map)>(
      y, n, [=](const auto& v) __attribute__((always_inline)) { return maps::unary<map>(v, p, q); },
      x);
}

template <Binary map, class T>
[[gnu::noinline]] void float_binary(Compute<T> p, const T* a, const T* b, T* y, std::int64_t n) {
  map_floats<true>(
      y, n,
      [=](const auto& u, const auto& v)
          __attribute__((always_inline)) { return maps::binary<map>(u, v, p); },
      a, b);
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
    const auto kernel = [=]<class S>(const S* in, S* out, std::int64_t n) {
      if constexpr (std::is_floating_point_v<C>) {
        maps::visit_map<maps::kLastUnary>(
            map, [=]<Unary m>() { float_unary<m, S>(C(p), C(q), in, out, n); });
      } else if constexpr (!std::is_same_v<C, bool>) {
        maps::visit_map<integers::kLastUnary>(map,
                                              [=]<Unary m>() { integer_unary<m>(in, out, n); });
      }
    };
    simd::map_blocks<T>(y, cost_of(map), kernel, x);
  });
}

void binary_cpu(Binary map, double p, const Array& a, const Array& b, const Array& y) {
  DivisionFaults faults;
  {
    const GilRelease work(y.size());
    visit_dtype(y.dtype(), [&]<class T>(Type<T>) {
      using C = Compute<T>;
      const auto kernel = [=, &faults]<class S>(const S* in_a, const S* in_b, S* out,
                                                std::int64_t n) {
        if constexpr (std::is_floating_point_v<C>) {
          maps::visit_map<maps::kLastBinary>(
              map, [=]<Binary m>() { float_binary<m, S>(C(p), in_a, in_b, out, n); });
        } else if constexpr (!std::is_same_v<C, bool>) {
          maps::visit_map<integers::kLastBinary>(
              map, [=, &faults]<Binary m>() { integer_binary<m>(in_a, in_b, out, n, faults); });
        }
      };
      simd::map_blocks<T>(y, 1, kernel, a, b);
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
