// Single numbers as formulas of vectors take them: with select() and all() of comparisons, and the
// elementary functions of the standard library.
#pragma once

#include <cmath>
#include <type_traits>

#include "devices/host_device.h"

namespace renga::maps {

using std::abs, std::floor, std::ceil, std::trunc, std::sqrt, std::exp, std::expm1, std::erf,
    std::isnan;
using std::acos, std::asin, std::atan, std::cos, std::cosh, std::sin, std::sinh, std::tan;
using std::atanh, std::log, std::log10, std::log1p, std::log2, std::tanh, std::atan2, std::fmod,
    std::pow;

template <class C>
requires std::is_arithmetic_v<C> RENGA_INLINE C select(bool condition, C yes, C no) {
  return condition ? yes : no;
}
RENGA_INLINE bool all(bool condition) { return condition; }
// These are as the hardware's: the result is the second operand if either is NaN.
template <class C>
requires std::is_arithmetic_v<C> RENGA_INLINE C max(C a, C b) { return a > b ? a : b; }
template <class C>
requires std::is_arithmetic_v<C> RENGA_INLINE C min(C a, C b) { return a < b ? a : b; }
template <class C>
requires std::is_arithmetic_v<C> RENGA_INLINE C exp_of_negative(C v) { return exp(v); }
template <class C>
requires std::is_arithmetic_v<C> RENGA_INLINE C log1p_exp(C v) { return log1p(exp(v)); }

// The numbers in a vector.
template <class V>
struct ElementOf {
  using type = typename V::value_type;
};
template <class C>
requires std::is_arithmetic_v<C>
struct ElementOf<C> {
  using type = C;
};
template <class V>
using element_of = typename ElementOf<V>::type;

// f(x...), computed in double.
template <class F, class C, class... In>
requires std::is_arithmetic_v<C> RENGA_INLINE C in_doubles(const F& f, C first, In... more) {
  return static_cast<C>(f(static_cast<double>(first), static_cast<double>(more)...));
}

}  // namespace renga::maps
