#include "ops/elementwise/elementwise.h"

#include <cmath>
#include <limits>
#include <numbers>
#include <type_traits>

#include "devices/gil_release.h"
#include "ops/elementwise/cpu/integers.h"
#include "simd/blocked_loop.h"

namespace renga {
namespace {

// As Python divides floats: the remainder is exact, while a / b may be rounded up to an integer.
template <class C>
C floor_divide(C a, C b) {
  if (b == 0) return a / b;
  const C remainder = std::fmod(a, b);
  C quotient = (a - remainder) / b;
  if (remainder != 0 && (remainder < 0) != (b < 0)) quotient -= 1;
  if (quotient == 0) return std::copysign(C(0), a / b);
  const C floored = std::floor(quotient);
  return quotient - floored > C(0.5) ? floored + 1 : floored;
}

// NaN propagates, as in NumPy; the hardware's max returns its second operand if either is NaN.
template <class V>
V maximum(V a, V b) {
  return xsimd::select(simd::is_nan(a), a, xsimd::max(a, b));
}
template <class V>
V minimum(V a, V b) {
  return xsimd::select(simd::is_nan(a), a, xsimd::min(a, b));
}

template <class V>
V softplus(V x, V beta) {
  // log(1 + e^z) = max(z, 0) + log1p(e^-|z|), which cannot overflow.
  const V z = x * beta;
  return (xsimd::max(V(0), z) + xsimd::log1p(xsimd::exp(-xsimd::abs(z)))) / beta;
}

// xsimd takes the exponent of a subnormal double for that of the least normal one. Subnormal
// numbers are multiplied by 2^54 first, whose logarithm is `shift`.
template <class V, class F>
V logarithm(V v, double shift, F log) {
  using C = typename V::value_type;
  if constexpr (std::is_same_v<C, double>) {
    const auto subnormal = v < V(std::numeric_limits<C>::min());
    const V y = log(xsimd::select(subnormal, v * V(0x1p54), v));
    return xsimd::select(subnormal, y - V(shift), y);
  } else {
    return log(v);
  }
}

// erf is 1 or -1 long before the limits, beyond which the square would overflow.
template <class V>
V limited_erf(V v) {
  const V limit(10);
  const V x = xsimd::select(v > limit, limit, xsimd::select(v < -limit, -limit, v));
  return xsimd::erf(x);
}

// Maps before Unary::exp.
template <class T>
void arithmetic_unary(Unary map, Compute<T> p, Compute<T> q, const T* x, T* y, std::int64_t n) {
  using C = Compute<T>;
  using V = xsimd::batch<C>;
  const V vp(p), vq(q), zero(C(0)), one(C(1));
  const auto run = [&](auto f) { simd::map_batches(x, y, n, f); };
  switch (map) {
    case Unary::negative:
      return run([](V v) { return -v; });
    case Unary::absolute:
      return run([](V v) { return xsimd::abs(v); });
    case Unary::sign:
      return run([](V v) { return xsimd::select(simd::is_nan(v), v, xsimd::sign(v)); });
    case Unary::square:
      return run([](V v) { return v * v; });
    case Unary::add:
      return run([vp](V v) { return v + vp; });
    case Unary::multiply:
      return run([vp](V v) { return v * vp; });
    case Unary::subtract_from:
      return run([vp](V v) { return vp - v; });
    case Unary::divide_into:
      return run([vp](V v) { return vp / v; });
    case Unary::power:
      for (std::int64_t i = 0; i < n; ++i) y[i] = T(std::pow(C(x[i]), p));
      return;
    case Unary::power_of:
      for (std::int64_t i = 0; i < n; ++i) y[i] = T(std::pow(p, C(x[i])));
      return;
    case Unary::clip:
      return run([vp, vq](V v) { return minimum(maximum(v, vp), vq); });
    case Unary::inside:
      return run([=](V v) { return xsimd::select((vp <= v) && (v <= vq), one, zero); });
    case Unary::floor_divide:
      for (std::int64_t i = 0; i < n; ++i) y[i] = T(floor_divide(C(x[i]), p));
      return;
    case Unary::floor_divide_into:
      for (std::int64_t i = 0; i < n; ++i) y[i] = T(floor_divide(p, C(x[i])));
      return;
    case Unary::floor:
      return run([](V v) { return xsimd::floor(v); });
    case Unary::ceil:
      return run([](V v) { return xsimd::ceil(v); });
    default:
      return;
  }
}

// From Unary::exp to before Unary::sigmoid.
template <class T>
void function_unary(Unary map, const T* x, T* y, std::int64_t n) {
  using C = Compute<T>;
  using V = xsimd::batch<C>;
  const V one(C(1));
  const auto run = [&](auto f) { simd::map_batches(x, y, n, f); };
  switch (map) {
    case Unary::exp:
      return run([](V v) { return xsimd::exp(v); });
    case Unary::expm1:
      return run([](V v) { return xsimd::expm1(v); });
    case Unary::log:
      return run([](V v) {
        return logarithm(v, 54 * std::numbers::ln2, [](V x) { return xsimd::log(x); });
      });
    case Unary::log1p:
      return run([](V v) { return xsimd::log1p(v); });
    case Unary::log2:
      return run([](V v) { return logarithm(v, 54, [](V x) { return xsimd::log2(x); }); });
    case Unary::log10:
      return run([](V v) {
        return logarithm(v, 54 * std::numbers::ln2 / std::numbers::ln10,
                         [](V x) { return xsimd::log10(x); });
      });
    case Unary::sqrt:
      return run([](V v) { return xsimd::sqrt(v); });
    case Unary::rsqrt:
      return run([one](V v) { return one / xsimd::sqrt(v); });
    case Unary::sin:
      return run([](V v) { return xsimd::sin(v); });
    case Unary::cos:
      return run([](V v) { return xsimd::cos(v); });
    case Unary::tan:
      return run([](V v) { return xsimd::tan(v); });
    case Unary::arcsin:
      return run([](V v) { return xsimd::asin(v); });
    case Unary::arccos:
      return run([](V v) { return xsimd::acos(v); });
    case Unary::arctan:
      return run([](V v) { return xsimd::atan(v); });
    case Unary::sinh:
      return run([](V v) { return xsimd::sinh(v); });
    case Unary::cosh:
      return run([](V v) { return xsimd::cosh(v); });
    case Unary::tanh:
      return run([](V v) { return xsimd::tanh(v); });
    case Unary::erf:
      return run([](V v) { return limited_erf(v); });
    default:
      return;
  }
}

template <class T>
void activation_unary(Unary map, Compute<T> p, const T* x, T* y, std::int64_t n) {
  using C = Compute<T>;
  using V = xsimd::batch<C>;
  const V vp(p), zero(C(0)), one(C(1));
  const auto run = [&](auto f) { simd::map_batches(x, y, n, f); };
  switch (map) {
    case Unary::sigmoid:
      return run([one](V v) { return one / (one + xsimd::exp(-v)); });
    case Unary::relu:
      return run([zero](V v) { return xsimd::max(zero, v); });
    case Unary::leaky_relu:
      return run([=](V v) { return xsimd::select(v < zero, v * vp, v); });
    case Unary::elu:
      return run([=](V v) { return xsimd::select(v < zero, vp * xsimd::expm1(v), v); });
    case Unary::softplus:
      return run([vp](V v) { return softplus(v, vp); });
    default:
      return;
  }
}

template <class T>
void float_unary(Unary map, Compute<T> p, Compute<T> q, const T* x, T* y, std::int64_t n) {
  if (map < Unary::exp) return arithmetic_unary(map, p, q, x, y, n);
  if (map < Unary::sigmoid) return function_unary(map, x, y, n);
  activation_unary(map, p, x, y, n);
}

template <class T>
void float_binary(Binary map, Compute<T> p, const T* a, const T* b, T* y, std::int64_t n) {
  using C = Compute<T>;
  using V = xsimd::batch<C>;
  const V vp(p), zero(C(0)), one(C(1));
  const auto run = [&](auto f) { simd::map_batches(a, b, y, n, f); };
  switch (map) {
    case Binary::add:
      return run([](V u, V v) { return u + v; });
    case Binary::subtract:
      return run([](V u, V v) { return u - v; });
    case Binary::multiply:
      return run([](V u, V v) { return u * v; });
    case Binary::divide:
      return run([](V u, V v) { return u / v; });
    case Binary::floor_divide:
      for (std::int64_t i = 0; i < n; ++i) y[i] = T(floor_divide(C(a[i]), C(b[i])));
      return;
    case Binary::power:
      for (std::int64_t i = 0; i < n; ++i) y[i] = T(std::pow(C(a[i]), C(b[i])));
      return;
    case Binary::maximum:
      return run([](V u, V v) { return maximum(u, v); });
    case Binary::minimum:
      return run([](V u, V v) { return minimum(u, v); });
    case Binary::greater_equal:
      return run([=](V u, V v) { return xsimd::select(u >= v, one, zero); });
    case Binary::less_equal:
      return run([=](V u, V v) { return xsimd::select(u <= v, one, zero); });
    case Binary::arctan2:
      for (std::int64_t i = 0; i < n; ++i) y[i] = T(std::atan2(C(a[i]), C(b[i])));
      return;
    case Binary::relu_grad:
      return run([=](V u, V v) { return xsimd::select(u > zero, v, zero); });
    case Binary::leaky_relu_grad:
      return run([=](V u, V v) { return xsimd::select(u < zero, v * vp, v); });
    case Binary::sigmoid_grad:
      return run([=](V u, V v) { return v * u * (one - u); });
    case Binary::tanh_grad:
      return run([=](V u, V v) { return v * (one - u * u); });
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
        float_unary<S>(map, C(p), C(q), in, out, n);
      } else if constexpr (!std::is_same_v<C, bool>) {
        integers::unary<C>(map, in, out, n);
      }
    });
  });
}

void binary_cpu(Binary map, double p, const Array& a, const Array& b, const Array& y) {
  integers::DivisionFaults faults;
  {
    const GilRelease work(y.size());
    visit_dtype(y.dtype(), [&]<class T>(Type<T>) {
      using C = Compute<T>;
      simd::map_blocks<T>(
          a, b, y, 1, [=, &faults]<class S>(const S* in_a, const S* in_b, S* out, std::int64_t n) {
            if constexpr (std::is_floating_point_v<C>) {
              float_binary<S>(map, C(p), in_a, in_b, out, n);
            } else if constexpr (!std::is_same_v<C, bool>) {
              integers::binary<C>(map, in_a, in_b, out, n, faults);
            }
          });
    });
  }
  faults.report();
}

// T is any type of the elements' size: they are only copied.
template <class T>
void select_loop(const Array& condition, const Array& a, const Array& b, const Array& y) {
  const auto loop = make_loop<4>({&y, &condition, &a, &b});
  parallel_walk(loop, 2, [](std::int64_t n, const auto& p, const auto& s) {
    for (std::int64_t i = 0; i < n; ++i) {
      const bool first = *reinterpret_cast<const bool*>(p[1] + i * s[1]);
      const std::byte* from = first ? p[2] + i * s[2] : p[3] + i * s[3];
      *reinterpret_cast<T*>(p[0] + i * s[0]) = *reinterpret_cast<const T*>(from);
    }
  });
}

void select_cpu(const Array& condition, const Array& a, const Array& b, const Array& y) {
  const GilRelease work(y.size());
  switch (y.itemsize()) {
    case 1:
      return select_loop<std::uint8_t>(condition, a, b, y);
    case 2:
      return select_loop<std::uint16_t>(condition, a, b, y);
    case 4:
      return select_loop<std::uint32_t>(condition, a, b, y);
    default:
      return select_loop<std::uint64_t>(condition, a, b, y);
  }
}

[[maybe_unused]] const bool registered =
    elementwise_kernels.add(0, {unary_cpu, binary_cpu, select_cpu});

}  // namespace
}  // namespace renga
