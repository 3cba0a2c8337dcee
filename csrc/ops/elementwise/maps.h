// The formulas of element-wise functions of floats: for vectors (simd/vector.h) on the CPU, for
// single numbers on CUDA devices. Calls of elementary functions find those of vectors by their
// argument (simd/elementary.h), and those of single numbers in numbers.h.
#pragma once

#include <numbers>
#include <type_traits>

#include "devices/host_device.h"
#include "ops/elementwise/elementwise.h"
#include "ops/elementwise/gamma_maps.h"
#include "ops/elementwise/special_maps.h"

namespace renga::maps {

// NaN propagates, as in NumPy.
template <class V>
RENGA_INLINE V maximum(const V& a, const V& b) {
  return select(isnan(a), a, max(a, b));
}
template <class V>
RENGA_INLINE V minimum(const V& a, const V& b) {
  return select(isnan(a), a, min(a, b));
}

template <class V>
RENGA_INLINE V sign(const V& v) {
  const V of_number = select(v > V(0), V(1), V(select(v < V(0), V(-1), V(0))));
  return select(isnan(v), v, of_number);
}

template <class V>
RENGA_INLINE V logistic(const V& v) {
  return V(1) / (V(1) + exp(-v));
}

template <class V>
RENGA_INLINE V softplus(const V& x, const V& beta) {
  // log(1 + e^z) = max(z, 0) + log1p(e^-|z|), which cannot overflow.
  const V z = x * beta;
  return (max(V(0), z) + log1p_exp(V(-abs(z)))) / beta;
}

template <class V>
RENGA_INLINE V erf_slope(const V& v) {
  using C = element_of<V>;
  return V(C(2 * std::numbers::inv_sqrtpi)) * exp_of_negative(V(-(v * v)));
}

template <class V>
RENGA_INLINE V hard_sigmoid(const V& v) {
  using C = element_of<V>;
  return min(V(1), max(V(0), V(V(C(0.2)) * v + V(C(0.5)))));
}

template <class V>
RENGA_INLINE V hard_swish(const V& v) {
  return v * min(V(6), max(V(0), V(v + V(3)))) / V(6);
}
template <class V>
RENGA_INLINE V hard_swish_slope(const V& v) {
  const V between = (v + v + V(3)) / V(6);
  return select(v <= V(-3), V(0), V(select(v >= V(3), V(1), between)));
}

// Returns the cumulative distribution function of the standard normal distribution.
template <class V>
RENGA_INLINE V normal_cdf(const V& v) {
  using C = element_of<V>;
  return V(C(0.5)) * (V(1) + erf(V(v * V(C(std::numbers::sqrt2 / 2)))));
}

template <class V>
RENGA_INLINE V gelu_slope(const V& v) {
  using C = element_of<V>;
  const V density =
      V(C(std::numbers::inv_sqrtpi / std::numbers::sqrt2)) * exp_of_negative(V(V(C(-0.5)) * v * v));
  return normal_cdf(v) + v * density;
}

// (1 + tanh(z / 2)) / 2 = logistic(z), where z = sqrt(8 / pi) (v + 0.044715 v³).
template <class V>
RENGA_INLINE V gelu_argument(const V& v) {
  using C = element_of<V>;
  const V scale(C(2 * std::numbers::sqrt2 * std::numbers::inv_sqrtpi));
  return scale * (v + V(C(0.044715)) * v * v * v);
}
template <class V>
RENGA_INLINE V gelu_tanh_slope(const V& v) {
  using C = element_of<V>;
  const V scale(C(2 * std::numbers::sqrt2 * std::numbers::inv_sqrtpi));
  const V slope = scale * (V(1) + V(C(3 * 0.044715)) * v * v);
  const V s = logistic(gelu_argument(v));
  return s + v * s * (V(1) - s) * slope;
}

template <class V>
RENGA_INLINE V silu_slope(const V& v) {
  const V s = logistic(v);
  return s * (V(1) + v * (V(1) - s));
}

// tanh(log(1 + e^v)) = ((1 + e^v)² - 1) / ((1 + e^v)² + 1), by e^-|v|, which cannot overflow.
template <class V>
RENGA_INLINE V tanh_softplus(const V& v) {
  const V e = exp_of_negative(V(-abs(v)));
  const V numerator = select(v < V(0), V(e * (e + V(2))), V(V(1) + e + e));
  const V square = select(v < V(0), V(1), V(e * e));
  return numerator / (numerator + square + square);
}
template <class V>
RENGA_INLINE V mish_slope(const V& v) {
  const V t = tanh_softplus(v);
  return t + v * (V(1) - t * t) * logistic(v);
}

// Divides as Python divides floats: the remainder is exact, while a / b may be rounded up to an
// integer.
template <class C>
requires std::is_arithmetic_v<C> RENGA_INLINE C floor_divide(C a, C b) {
  if (b == 0) return a / b;
  const C remainder = std::fmod(a, b);
  C quotient = (a - remainder) / b;
  if (remainder != 0 && (remainder < 0) != (b < 0)) quotient -= 1;
  if (quotient == 0) return std::copysign(C(0), a / b);
  const C floored = std::floor(quotient);
  return quotient - floored > C(0.5) ? floored + 1 : floored;
}
template <class V>
requires(!std::is_arithmetic_v<V>) RENGA_INLINE V floor_divide(const V& a, const V& b) {
  using C = element_of<V>;
  return floor_quotient(a, b, [](C u, C v) { return floor_divide(u, v); });
}

template <class V>
RENGA_INLINE V huber(const V& v, const V& delta) {
  const V size = abs(v), near = minimum(size, delta);
  return near * (size - near * V(element_of<V>(0.5)));
}

// x, or -x for a label of 1: softplus of it is the loss.
template <class V>
RENGA_INLINE V away_from_label(const V& x, const V& label) {
  return select(label > V(0), -x, x);
}
template <class V>
RENGA_INLINE V sigmoid_nll(const V& x, const V& label) {
  return select(label < V(0), V(0), softplus(away_from_label(x, label), V(1)));
}
template <class V>
RENGA_INLINE V sigmoid_nll_slope(const V& x, const V& label) {
  const V slope = away_from_label(logistic(away_from_label(x, label)), label);
  return select(label < V(0), V(0), slope);
}

inline constexpr Unary kLastUnary = Unary::mish;
inline constexpr Binary kLastBinary = Binary::zeta;
inline constexpr Quaternary kLastQuaternary = Quaternary::difference;

// The function with parameters p and q of a vector or number.
template <Unary map, class V>
RENGA_INLINE V unary(const V& v, element_of<V> p, element_of<V> q) {
  const V zero(0), one(1);
  if constexpr (map == Unary::negative) return -v;
  if constexpr (map == Unary::absolute) return abs(v);
  if constexpr (map == Unary::sign) return sign(v);
  if constexpr (map == Unary::square) return v * v;
  if constexpr (map == Unary::floor) return floor(v);
  if constexpr (map == Unary::ceil) return ceil(v);
  if constexpr (map == Unary::trunc) return trunc(v);
  if constexpr (map == Unary::add) return v + V(p);
  if constexpr (map == Unary::multiply) return v * V(p);
  if constexpr (map == Unary::subtract_from) return V(p) - v;
  if constexpr (map == Unary::divide_into) return V(p) / v;
  if constexpr (map == Unary::power) return pow(v, V(p));
  if constexpr (map == Unary::cube) return v * v * v;
  if constexpr (map == Unary::power_of) return pow(V(p), v);
  if constexpr (map == Unary::clip) return minimum(maximum(v, V(p)), V(q));
  if constexpr (map == Unary::inside) return select((V(p) <= v) && (v <= V(q)), one, zero);
  if constexpr (map == Unary::floor_divide) return floor_divide(v, V(p));
  if constexpr (map == Unary::floor_divide_into) return floor_divide(V(p), v);
  if constexpr (map == Unary::exp) return exp(v);
  if constexpr (map == Unary::expm1) return expm1(v);
  if constexpr (map == Unary::log) return log(v);
  if constexpr (map == Unary::log1p) return log1p(v);
  if constexpr (map == Unary::log2) return log2(v);
  if constexpr (map == Unary::log10) return log10(v);
  if constexpr (map == Unary::sqrt) return sqrt(v);
  if constexpr (map == Unary::rsqrt) return one / sqrt(v);
  if constexpr (map == Unary::sin) return sin(v);
  if constexpr (map == Unary::cos) return cos(v);
  if constexpr (map == Unary::tan) return tan(v);
  if constexpr (map == Unary::arcsin) return asin(v);
  if constexpr (map == Unary::arccos) return acos(v);
  if constexpr (map == Unary::arctan) return atan(v);
  if constexpr (map == Unary::arctanh) return atanh(v);
  if constexpr (map == Unary::sinh) return sinh(v);
  if constexpr (map == Unary::cosh) return cosh(v);
  if constexpr (map == Unary::tanh) return tanh(v);
  if constexpr (map == Unary::erf) return erf(v);
  if constexpr (map >= Unary::erfc && map <= Unary::ndtri) return special<map>(v);
  if constexpr (map == Unary::erfcx) return in_doubles(ScaledErfc{}, v);
  if constexpr (map == Unary::log_ndtr) return in_doubles(LogNormalCdf{}, v);
  if constexpr (map == Unary::lgamma) return in_doubles(LogGamma{}, v);
  if constexpr (map == Unary::digamma) return in_doubles(Digamma{}, v);
  if constexpr (map == Unary::sigmoid) return logistic(v);
  if constexpr (map == Unary::relu) return max(zero, v);
  if constexpr (map == Unary::leaky_relu) return select(v < zero, V(v * V(p)), v);
  if constexpr (map == Unary::elu) return select(v < zero, V(V(p) * expm1(v)), V(V(q) * v));
  if constexpr (map == Unary::softplus) return softplus(v, V(p));
  if constexpr (map == Unary::clipped_relu) return min(V(p), max(zero, v));
  if constexpr (map == Unary::hard_sigmoid) return hard_sigmoid(v);
  if constexpr (map == Unary::hard_swish) return hard_swish(v);
  if constexpr (map == Unary::gelu) return v * normal_cdf(v);
  if constexpr (map == Unary::gelu_tanh) return v * logistic(gelu_argument(v));
  if constexpr (map == Unary::silu) return v * logistic(v);
  if constexpr (map == Unary::mish) return v * tanh_softplus(v);
}

template <Binary map, class V>
RENGA_INLINE V binary(const V& a, const V& b, element_of<V> p) {
  const V zero(0), one(1);
  if constexpr (map == Binary::add) return a + b;
  if constexpr (map == Binary::subtract) return a - b;
  if constexpr (map == Binary::multiply) return a * b;
  if constexpr (map == Binary::divide) return a / b;
  if constexpr (map == Binary::floor_divide) return floor_divide(a, b);
  if constexpr (map == Binary::fmod) return fmod(a, b);
  if constexpr (map == Binary::power) return pow(a, b);
  if constexpr (map == Binary::maximum) return maximum(a, b);
  if constexpr (map == Binary::minimum) return minimum(a, b);
  if constexpr (map == Binary::greater_equal) return select(a >= b, one, zero);
  if constexpr (map == Binary::less_equal) return select(a <= b, one, zero);
  if constexpr (map == Binary::arctan2) return atan2(a, b);
  if constexpr (map == Binary::sigmoid_nll) return sigmoid_nll(a, b);
  if constexpr (map == Binary::sigmoid_nll_slope) return sigmoid_nll_slope(a, b);
  if constexpr (map == Binary::bernoulli_nll) return softplus(a, one) - a * b;
  if constexpr (map == Binary::bernoulli_nll_slope) return logistic(a) - b;
  if constexpr (map == Binary::huber) return huber(V(a - b), V(p));
  if constexpr (map == Binary::squared_difference) return (a - b) * (a - b);
  if constexpr (map == Binary::prelu) return select(a < zero, V(b * a), a);
  if constexpr (map == Binary::prelu_slope) return select(a < zero, b, one);
  if constexpr (map == Binary::relu_grad) return select(a > zero, b, zero);
  if constexpr (map == Binary::leaky_relu_grad) return select(a > zero, b, V(b * V(p)));
  if constexpr (map == Binary::softplus_grad) return b * logistic(V(a * V(p)));
  if constexpr (map == Binary::elu_grad) {
    const auto above = a > zero;  // is false of NaN, whose gradient is NaN
    return select(above, b, V(b * V(p) * exp_of_negative(V(select(above, zero, a)))));
  }
  if constexpr (map == Binary::sigmoid_grad) return b * a * (one - a);
  if constexpr (map == Binary::tanh_grad) return b * (one - a * a);
  if constexpr (map == Binary::clipped_relu_grad) {
    return select((zero < a) && (a < V(p)), b, zero);
  }
  if constexpr (map == Binary::hard_sigmoid_grad) {
    using C = element_of<V>;
    return select(abs(a) < V(C(2.5)), V(V(C(0.2)) * b), zero);
  }
  if constexpr (map == Binary::hard_swish_grad) return b * hard_swish_slope(a);
  if constexpr (map == Binary::gelu_grad) return b * gelu_slope(a);
  if constexpr (map == Binary::gelu_tanh_grad) return b * gelu_tanh_slope(a);
  if constexpr (map == Binary::silu_grad) return b * silu_slope(a);
  if constexpr (map == Binary::mish_grad) return b * mish_slope(a);
  if constexpr (map == Binary::erf_grad) return b * erf_slope(a);
  if constexpr (map == Binary::polygamma) return in_doubles(Polygamma{}, a, b);
  if constexpr (map == Binary::zeta) return in_doubles(HurwitzZeta{p}, a, b);
}

template <Quaternary map, class V>
RENGA_INLINE V quaternary(const V& a, const V& b, const V& c, const V& d) {
  if constexpr (map == Quaternary::interpolate) return a * b + (V(1) - a) * c;
  if constexpr (map == Quaternary::rotate) return a * c - b * d;
  if constexpr (map == Quaternary::difference) return min(d, max(-d, a - b)) * c;
}

// Calls visit<map>() with the map as a template argument, by a table.
template <auto last, class Visit>
void visit_map(decltype(last) map, const Visit& visit) {
  using Map = decltype(last);
  constexpr auto count = static_cast<std::size_t>(last) + 1;
  using Call = void (*)(const Visit&);
  static constexpr auto table = []<std::size_t... I>(std::index_sequence<I...>) {
    return std::array<Call, count>{
        [](const Visit& v) { v.template operator()<static_cast<Map>(I)>(); }...};
  }
  (std::make_index_sequence<count>());
  table[static_cast<std::size_t>(map)](visit);
}

}  // namespace renga::maps
