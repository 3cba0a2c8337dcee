// The complement of the error function and its inverses, of vectors of floats that are computed in
// double, as powers are (simd/powers.h). Polynomials are minimax approximations.
#pragma once

#include <array>

#include "simd/elementary.h"

namespace renga::simd {

// Coefficients from the highest power on.
template <class D, std::size_t n>
[[gnu::always_inline]] inline D polynomial(const D& x, const std::array<double, n>& coefficients) {
  D p(coefficients[0]);
#pragma GCC unroll 16
  for (std::size_t k = 1; k < n; ++k) p = p * x + D(coefficients[k]);
  return p;
}

// With a relative error of 2^-32: e^(-x²) times a quotient that changes slowly.
template <class D>
[[gnu::always_inline]] inline D erfc_of_floats(const D& x) {
  constexpr std::array kQuotient{-1.098676929857e-5, 3.876148133487e-6,  1.130314090691e-4,
                                 -1.041681381949e-4, -7.711236721728e-4, 1.888148748256e-3,
                                 2.525930592565e-3,  -2.377035003817e-2, 6.830874345748e-2,
                                 -1.192736884799e-1, 1.296450928758e-1,  -4.756229287479e-2,
                                 -1.356211043673e-1, 1.253008058255};
  const D size = min(D(14), abs(x));  // beyond, it is 0 or 2
  const D power = power_of_2(size * size * D(-std::numbers::log2e));
  const D t = (size - D(3)) / (size + D(3));
  const D tail = power * polynomial(t, kQuotient) / (D(1) + size + size);
  return select(x < D(0), D(2) - tail, tail);
}

// y / x of erf(y) = x, by w = -log(1 - x²), with a relative error of 2^-29.
template <class D>
[[gnu::always_inline]] inline D slope_of_inverse_erf(const D& w) {
  constexpr std::array kCenter{-1.178252790086e-6, 2.946744364801e-6,  7.688566552238e-6,
                               -4.144226657679e-5, 2.117053603855e-5,  2.921763198269e-4,
                               -8.343980838375e-4, -4.878935346215e-4, 8.525448248958e-3,
                               -1.957356137103e-2, -2.610823898682e-2, 6.166006918508e-1,
                               1.501409351146};
  constexpr std::array kTail{-3.142822094112e-6, -2.737671191966e-5, 8.833544922405e-5,
                             -1.655760212773e-5, -3.273587651364e-4, 9.359612054344e-4,
                             -1.711312393302e-3, 2.579152683033e-3,  -3.871082374598e-3,
                             5.541280122286e-3,  9.867813639029e-1,  3.051757101881};
  constexpr std::array kFarTail{2.231683739457e-5,  -3.979208302358e-5, 2.895402915965e-5,
                                -8.266736576071e-5, 2.094017947115e-4,  -3.359340519469e-4,
                                3.654156246537e-4,  3.663990212397e-4,  -4.844212953329e-3,
                                3.125699912453,     7.171552405505};
  // Each on an interval that is moved to [-1, 1]: w up to 5; its root from there to 4.2, and 10.4.
  constexpr double first = 2.23606797749979, second = 4.2, third = 10.4;
  const D root = sqrt(w);
  const D center = polynomial(w * D(0.4) - D(1), kCenter);
  const D tail = polynomial((root + root - D(first + second)) * D(1 / (second - first)), kTail);
  const D far = polynomial((root + root - D(second + third)) * D(1 / (third - second)), kFarTail);
  return select(root < D(first), center, select(root < D(second), tail, far));
}

template <class D>
[[gnu::always_inline]] inline D erfinv_of_floats(const D& x) {
  const D rest = (D(1) - x) * (D(1) + x);
  const D w = logarithm_to_base_2(rest) * D(-std::numbers::ln2);
  const D infinity = with_sign(D(std::numeric_limits<double>::infinity()), x);
  const D undefined = D(std::numeric_limits<double>::quiet_NaN());
  // Neither comparison holds for NaN.
  return select(rest > D(0), x * slope_of_inverse_erf(w),
                select(rest == D(0), infinity, undefined));
}

template <class D>
[[gnu::always_inline]] inline D erfcinv_of_floats(const D& y) {
  const D rest = y * (D(2) - y), x = D(1) - y;
  const D w = logarithm_to_base_2(rest) * D(-std::numbers::ln2);
  const D infinity = with_sign(D(std::numeric_limits<double>::infinity()), x);
  const D undefined = D(std::numeric_limits<double>::quiet_NaN());
  return select(rest > D(0), x * slope_of_inverse_erf(w),
                select(rest == D(0), infinity, undefined));
}

// Functions of the standard normal distribution are scaled ones.
template <class D>
[[gnu::always_inline]] inline D ndtr_of_floats(const D& x) {
  return erfc_of_floats(x * D(-1 / std::numbers::sqrt2)) * D(0.5);
}
template <class D>
[[gnu::always_inline]] inline D ndtri_of_floats(const D& p) {
  return erfcinv_of_floats(p + p) * D(-std::numbers::sqrt2);
}

// Each of them; of doubles by `of_number`, one by one.
#define RENGA_SPECIAL(name)                                                                     \
  template <class Target, class C, class Other>                                                 \
  [[gnu::always_inline]] inline Vector<Target, C> vector_##name(const Vector<Target, C>& x,     \
                                                                const Other& of_number) {       \
    if constexpr (std::is_same_v<C, float>) {                                                   \
      return in_doubles<Target>(                                                                \
          [](const auto& v) __attribute__((always_inline)) { return name##_of_floats(v); }, x); \
    } else {                                                                                    \
      return one_by_one([&](C v, C) { return of_number(v); }, x, x);                            \
    }                                                                                           \
  }
RENGA_SPECIAL(erfc)
RENGA_SPECIAL(ndtr)
RENGA_SPECIAL(erfinv)
RENGA_SPECIAL(erfcinv)
RENGA_SPECIAL(ndtri)
#undef RENGA_SPECIAL

}  // namespace renga::simd
