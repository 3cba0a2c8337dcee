// The complement of the error function and its inverses, of vectors of floats. Polynomials are
// minimax approximations.
#pragma once

#include "simd/elementary.h"

namespace renga::simd {

// For |x| <= 1, by a polynomial in x².
template <class V>
[[gnu::always_inline]] inline V erf_near_0(const V& x) {
  constexpr float kSeries[] = {7.85529278e-5f, -8.01078319e-4f, 5.18841605e-3f, -2.68538726e-2f,
                               1.12835871e-1f, -3.7612626e-1f,  1.2837917e-1f};
  return x + x * polynomial(x * x, kSeries);
}

// erfc(size) for size >= 0 within 4 units in the last place, where -size² = high + low.
template <class Target>
[[gnu::always_inline]] inline Vector<Target, float> erfc_of_size(const Vector<Target, float>& size,
                                                                 const Vector<Target, float>& high,
                                                                 const Vector<Target, float>& low) {
  using V = Vector<Target, float>;
  // erfc(x) (1 + 2 x) e^(x²)
  constexpr float kQuotient[] = {3.56345145e-5f, -0.000182674805f, -0.000742801652f, 0.00194886295f,
                                 0.00252994819f, -0.023787021f,    0.0683060486f,    -0.119271736f,
                                 0.129645395f,   -0.0475623782f,   -0.135621112f};
  // The constant term is more exact than a float.
  constexpr float constant = 1.25300801f, rest = 5.02664947e-8f;
  const V t = (size - V(3)) / (size + V(3));
  const V q = (V(constant) + (polynomial(t, kQuotient) * t + V(rest))) / (V(1) + size + size);
  Reduced<Target> exponent = reduced<Target>(high.v);
  exponent.r += low.v;
  const ScaledPower<Target> power = scaled_power<Target>(exponent);
  return V(times_any_power<Target>(power.p * q.v, power.n));
}

// x without the lower 12 bits: its square is a float.
template <class Target>
[[gnu::always_inline]] inline Vector<Target, float> upper_half(const Vector<Target, float>& x) {
  return from_bits<Vector<Target, float>>(bits_of(x) & ~0xfff);
}

template <class V>
[[gnu::always_inline]] inline V erfc_of_floats(const V& x) {
  const V size = min(V(11), abs(x)), high = upper_half(size);  // beyond, it is 0 or 2
  const V tail = erfc_of_size(size, -(high * high), (high - size) * (high + size));
  const V far = select(x < V(0), V(2) - tail, tail);
  return select(size >= V(0.5f), far, V(1) - erf_near_0(x));  // NaN stays
}
// Half of erfc(-x / sqrt(2)), whose exponent is exact.
template <class V>
[[gnu::always_inline]] inline V ndtr_of_floats(const V& x) {
  constexpr float half = 0.5f, root_of_half = 1 / std::numbers::sqrt2_v<float>;
  const V size = min(V(15), abs(x)), high = upper_half(size);
  const V tail = erfc_of_size(size * V(root_of_half), V(-half) * high * high,
                              V(half) * (high - size) * (high + size));
  const V far = select(x > V(0), V(1) - tail * V(half), tail * V(half));
  const V near = V(half) * erf_near_0(x * V(root_of_half)) + V(half);
  return select(size >= V(half), far, near);  // NaN stays
}

// y / x of erf(y) = x, by w = -log(1 - x²), with a relative error of 2^-29 before rounding.
template <class V>
[[gnu::always_inline]] inline V slope_of_inverse_erf(const V& w) {
  using C = typename V::value_type;
  constexpr C kCenter[] = {-1.178252790086e-6, 2.946744364801e-6,  7.688566552238e-6,
                           -4.144226657679e-5, 2.117053603855e-5,  2.921763198269e-4,
                           -8.343980838375e-4, -4.878935346215e-4, 8.525448248958e-3,
                           -1.957356137103e-2, -2.610823898682e-2, 6.166006918508e-1};
  // The constant term of the center, more exact than a float.
  constexpr C constant = C(1.501409351146), rest = C(1.501409351146 - double{constant});
  constexpr C kTail[] = {-3.142822094112e-6, -2.737671191966e-5, 8.833544922405e-5,
                         -1.655760212773e-5, -3.273587651364e-4, 9.359612054344e-4,
                         -1.711312393302e-3, 2.579152683033e-3,  -3.871082374598e-3,
                         5.541280122286e-3,  9.867813639029e-1,  3.051757101881};
  constexpr C kFarTail[] = {2.231683739457e-5,  -3.979208302358e-5, 2.895402915965e-5,
                            -8.266736576071e-5, 2.094017947115e-4,  -3.359340519469e-4,
                            3.654156246537e-4,  3.663990212397e-4,  -4.844212953329e-3,
                            3.125699912453,     7.171552405505};
  // Each on an interval that is moved to [-1, 1]: w up to 5; its root from there to 4.2, and 10.4.
  constexpr C first = 2.23606797749979, second = 4.2, third = 10.4;
  const V root = sqrt(w);
  const V t = w * V(C(0.4)) - V(1);
  const V center = V(constant) + (polynomial(t, kCenter) * t + V(rest));
  if (all(root < V(first))) return center;
  const V tail = polynomial((root + root - V(first + second)) * V(C(1) / (second - first)), kTail);
  const V far =
      polynomial((root + root - V(second + third)) * V(C(1) / (third - second)), kFarTail);
  return select(root < V(first), center, select(root < V(second), tail, far));
}

// y of erf(y) = x by 1 - x² = rest, within 4 units in the last place.
template <class V>
[[gnu::always_inline]] inline V inverse_erf_by(const V& x, const V& rest) {
  const V y = x * slope_of_inverse_erf(-log(rest));
  const V infinity(std::numeric_limits<float>::infinity());
  // Not for NaN.
  return select(rest == V(0), select(x < V(0), -infinity, infinity), y);
}
template <class V>
[[gnu::always_inline]] inline V erfinv_of_floats(const V& x) {
  return inverse_erf_by(x, (V(1) - x) * (V(1) + x));
}
template <class V>
[[gnu::always_inline]] inline V erfcinv_of_floats(const V& y) {
  return inverse_erf_by(V(1) - y, y * (V(2) - y));
}
template <class V>
[[gnu::always_inline]] inline V ndtri_of_floats(const V& p) {
  return erfcinv_of_floats(p + p) * V(-std::numbers::sqrt2_v<float>);
}

}  // namespace renga::simd
