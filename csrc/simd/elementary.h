// Elementary functions of vectors, found by their argument. Exponentials, logarithms and what is
// made of them are renga's own, for all targets; the others are xsimd's, of vectors as wide as the
// instructions that all of the library is compiled for.
#pragma once

#include <numbers>
#include <xsimd/xsimd.hpp>

#include "simd/exponential.h"
#include "simd/logarithm.h"
#include "simd/vector.h"

namespace renga::simd {

// f of the numbers of x, in xsimd's vectors.
template <class Target, class C, class F>
[[gnu::always_inline]] inline Vector<Target, C> by_xsimd(const Vector<Target, C>& x, const F& f) {
  using Batch = xsimd::batch<C>;
  constexpr std::size_t width = Vector<Target, C>::width;
  alignas(sizeof(x.v)) C numbers[width];
  Vector<Target, C>::store(x.v, numbers);
  for (std::size_t i = 0; i < width; i += Batch::size) {
    Batch(f(Batch::load_aligned(numbers + i))).store_aligned(numbers + i);
  }
  return Vector<Target, C>(Vector<Target, C>::load(numbers));
}

#define RENGA_BY_XSIMD(name)                                                         \
  template <class Target, class C>                                                   \
  [[gnu::always_inline]] inline Vector<Target, C> name(const Vector<Target, C>& x) { \
    return by_xsimd(x, [](const auto& batch) { return xsimd::name(batch); });        \
  }
RENGA_BY_XSIMD(floor)
RENGA_BY_XSIMD(ceil)
RENGA_BY_XSIMD(trunc)
RENGA_BY_XSIMD(tan)
RENGA_BY_XSIMD(asin)
RENGA_BY_XSIMD(acos)
#undef RENGA_BY_XSIMD

template <class Target, class C>
[[gnu::always_inline]] inline Vector<Target, C> sqrt(const Vector<Target, C>& x) {
#if defined(__AVX__)
  typename Vector<Target, C>::V y;
  if constexpr (std::is_same_v<C, float>) {
    asm("vsqrtps %1, %0" : "=v"(y) : "v"(x.v));
  } else {
    asm("vsqrtpd %1, %0" : "=v"(y) : "v"(x.v));
  }
  return Vector<Target, C>(y);
#else
  return by_xsimd(x, [](const auto& batch) { return xsimd::sqrt(batch); });
#endif
}

// (sin r / r - 1) / r² and (cos r - 1 + r² / 2) / r⁴ by r²: minimax of floats, Taylor's of doubles.
inline constexpr float kFloatSine[] = {2.72468687e-6f, -0.00019840063f, 0.00833333183f,
                                       -0.166666667f};
inline constexpr float kFloatCosine[] = {-2.72984077e-7f, 2.48005806e-5f, -0.00138888876f,
                                         0.0416666667f};
inline constexpr double kDoubleSine[] = {
    2.8114572543455206e-15, -7.647163731819816e-13, 1.6059043836821613e-10, -2.505210838544172e-8,
    2.7557319223985893e-6,  -1.984126984126984e-4,  8.333333333333333e-3,   -0.16666666666666666};
inline constexpr double kDoubleCosine[] = {
    4.779477332387385e-14, -1.1470745597729725e-11, 2.08767569878681e-9, -2.755731922398589e-7,
    2.48015873015873e-5,   -1.388888888888889e-3,   0.041666666666666664};

// sin(x + quarters π / 2) for |x| up to 2^16, of doubles up to 2^20, around the nearest multiple of
// π / 2.
template <class Target, class C>
[[gnu::always_inline]] inline Vector<Target, C> sine_of_quarters(const Vector<Target, C>& x,
                                                                 int quarters) {
  using V = Vector<Target, C>;
  constexpr bool is_double = std::is_same_v<C, double>;
  constexpr int bits = 8 * sizeof(C);
  constexpr C round = is_double ? C(0x1.8p52) : C(0x1.8p23);  // leaves an integer
  // π / 2 in three parts, whose products are subtracted with one rounding.
  constexpr C high = is_double ? 0x1.921fb54442d18p0 : 1.57079625;
  constexpr C middle = is_double ? 0x1.1a62633145c07p-54 : 7.54978942e-8;
  constexpr C low = is_double ? -0x1.f1976b7ed8fbcp-110 : 5.39030286e-15;
  const V shifted = x * V(C(2 / std::numbers::pi)) + V(round);
  const V n = shifted - V(round);
  const V r = ((x - n * V(high)) - n * V(middle)) - n * V(low), square = r * r;
  V sine, cosine;
  if constexpr (is_double) {
    sine = polynomial(square, kDoubleSine), cosine = polynomial(square, kDoubleCosine);
  } else {
    sine = polynomial(square, kFloatSine), cosine = polynomial(square, kFloatCosine);
  }
  sine = r + r * square * sine;
  cosine = square * square * cosine - square * V(C(0.5)) + V(1);
  const BitsOf<V> quarter = bits_of(shifted) + quarters;
  const auto is_odd = from_bits<V>((quarter & 1) << (bits - 2)) > V(0);
  return from_bits<V>(bits_of(select(is_odd, cosine, sine)) ^ ((quarter & 2) << (bits - 2)));
}
// Of large numbers by xsimd.
template <class Target, class C, class F>
[[gnu::always_inline]] inline Vector<Target, C> sine(const Vector<Target, C>& x, int quarters,
                                                     const F& other) {
  const auto is_small = abs(x) <= Vector<Target, C>(std::is_same_v<C, double> ? 0x1p20 : 0x1p16);
  const auto y = sine_of_quarters(x, quarters);
  return all(is_small) ? y : select(is_small, y, by_xsimd(x, other));
}
template <class Target, class C>
[[gnu::always_inline]] inline Vector<Target, C> sin(const Vector<Target, C>& x) {
  const auto y = sine(x, 0, [](const auto& batch) { return xsimd::sin(batch); });
  return select(x == Vector<Target, C>(0), x, y);  // -0 too
}
template <class Target, class C>
[[gnu::always_inline]] inline Vector<Target, C> cos(const Vector<Target, C>& x) {
  return sine(x, 1, [](const auto& batch) { return xsimd::cos(batch); });
}

template <class Target, class C>
[[gnu::always_inline]] inline Vector<Target, C> log(const Vector<Target, C>& x) {
  constexpr bool is_double = std::is_same_v<C, double>;
  constexpr C high = is_double ? 0x1.62e42fefa3p-1 : 0x1.62ep-1;
  constexpr C low = is_double ? 2.8235290563031577e-13 : 3.1946184945309415e-05;
  return logarithm_of_any(x, sum_of_parts(logarithm_parts(x), high, low, C(1)));
}
template <class Target, class C>
[[gnu::always_inline]] inline Vector<Target, C> log2(const Vector<Target, C>& x) {
  return logarithm_of_any(x, sum_of_parts(logarithm_parts(x), C(1), C(0), C(std::numbers::log2e)));
}
template <class Target, class C>
[[gnu::always_inline]] inline Vector<Target, C> log10(const Vector<Target, C>& x) {
  constexpr bool is_double = std::is_same_v<C, double>;
  constexpr C high = is_double ? 0x1.34413509f7p-2 : 0x1.344p-2;
  constexpr C low = is_double ? 1.42050232272661e-13 : 4.605038981195214e-06;
  return logarithm_of_any(x, sum_of_parts(logarithm_parts(x), high, low, C(std::numbers::log10e)));
}

template <class Target, class C>
[[gnu::always_inline]] inline Vector<Target, C> exp(const Vector<Target, C>& x) {
  if constexpr (std::is_same_v<C, float>) {
    return Vector<Target, C>(exponential_of_any<Target>(x.v));
  } else {
    return exponential_of_doubles(x);
  }
}
// e^x for x <= 0.
template <class Target, class C>
[[gnu::always_inline]] inline Vector<Target, C> exp_of_negative(const Vector<Target, C>& x) {
  if constexpr (std::is_same_v<C, float>) {
    return Vector<Target, C>(exponential<Target>(x.v));
  } else {
    return exp(x);
  }
}
template <class Target, class C>
[[gnu::always_inline]] inline Vector<Target, C> expm1(const Vector<Target, C>& x) {
  if constexpr (std::is_same_v<C, float>) {
    return Vector<Target, C>(exponential_less_1<Target>(x.v));
  } else {
    return exponential_less_1_of_doubles(x);
  }
}
// log(u) for u = 1 + x, and what the rounding of u loses.
template <class Target, class C>
[[gnu::always_inline]] inline Vector<Target, C> log1p(const Vector<Target, C>& x) {
  using V = Vector<Target, C>;
  if constexpr (std::is_same_v<C, float>) {
    return by_xsimd(x, [](const auto& batch) { return xsimd::log1p(batch); });
  } else {
    const V u = x + V(1), y = log(u), more = y + (x - (u - V(1))) / u;
    const auto is_finite = (u > V(0)) && (u <= V(std::numeric_limits<C>::max()));
    return select(abs(x) < V(1e-300), x, select(is_finite, more, y));
  }
}
// Of doubles by e^|x| / 2; near 0 by Taylor's series.
template <class Target, class C>
[[gnu::always_inline]] inline Vector<Target, C> sinh(const Vector<Target, C>& x) {
  using V = Vector<Target, C>;
  if constexpr (std::is_same_v<C, float>) {
    return by_xsimd(x, [](const auto& batch) { return xsimd::sinh(batch); });
  } else {
    constexpr double kSeries[] = {
        8.2206352466243297e-18, 2.8114572543455206e-15, 7.6471637318198164e-13,
        1.6059043836821613e-10, 2.5052108385441720e-8,  2.7557319223985893e-6,
        1.9841269841269841e-4,  8.3333333333333332e-3,  0.16666666666666666};
    const V square = x * x, near = x + x * square * polynomial(square, kSeries);
    const V half = exponential_of_doubles(abs(x), -1), far = half - V(0.25) / half;
    return select(abs(x) > V(1), with_sign(far, x), near);
  }
}
template <class Target, class C>
[[gnu::always_inline]] inline Vector<Target, C> cosh(const Vector<Target, C>& x) {
  using V = Vector<Target, C>;
  if constexpr (std::is_same_v<C, float>) {
    return by_xsimd(x, [](const auto& batch) { return xsimd::cosh(batch); });
  } else {
    const V half = exponential_of_doubles(abs(x), -1);
    return half + V(0.25) / half;
  }
}
// log(1 + e^x) for x <= 0; of floats by a minimax polynomial.
template <class Target, class C>
[[gnu::always_inline]] inline Vector<Target, C> log1p_exp(const Vector<Target, C>& x) {
  const Vector<Target, C> power = exp_of_negative(x);
  if constexpr (std::is_same_v<C, float>) {
    constexpr float kSlope[] = {-0.00317605702f, 0.0195425273f, -0.0563736128f, 0.105436238f,
                                -0.152696671f,   0.196632743f,  -0.249516163f,  0.333297105f,
                                -0.499998926f,   0.999999995f};
    return power * polynomial(power, kSlope);
  } else {
    return log1p(power);
  }
}
// Of floats by a minimax polynomial of x or 1 / x.
template <class Target, class C>
[[gnu::always_inline]] inline Vector<Target, C> atan(const Vector<Target, C>& x) {
  using V = Vector<Target, C>;
  if constexpr (std::is_same_v<C, float>) {
    constexpr float kSeries[] = {0.00105760744f, -0.00703066947f, 0.0219129459f, -0.0439284107f,
                                 0.0668528152f,  -0.0878504328f,  0.110507713f,  -0.14278576f,
                                 0.199995581f,   -0.333333225f};
    const V size = abs(x);
    const auto is_large = size > V(1);
    const V t = select(is_large, V(-1) / size, size), square = t * t;
    const V angle = t + t * square * polynomial(square, kSeries);
    const V y = select(is_large, V(std::numbers::pi_v<float> / 2) + angle, angle);
    return from_bits<V>(bits_of(y) | (bits_of(x) & std::numeric_limits<std::int32_t>::min()));
  } else {
    return by_xsimd(x, [](const auto& batch) { return xsimd::atan(batch); });
  }
}
// Of floats by a minimax polynomial near 0, elsewhere by the logarithm.
template <class Target, class C>
[[gnu::always_inline]] inline Vector<Target, C> atanh(const Vector<Target, C>& x) {
  using V = Vector<Target, C>;
  if constexpr (std::is_same_v<C, float>) {
    constexpr float kSeries[] = {0.156291654f, 0.0409162307f, 0.0975194087f, 0.110508304f,
                                 0.14288286f,  0.199999593f,  0.333333334f};
    const V size = abs(x), square = x * x;
    const V far = log((V(1) + size) / (V(1) - size)) * V(0.5f);
    return select(size < V(0.5f), x + x * square * polynomial(square, kSeries),
                  select(x < V(0), -far, far));
  } else {
    return (log1p(x) - log1p(-x)) * V(0.5);
  }
}

// Within 2 units in the last place: near 0 by a minimax polynomial in x², elsewhere by e^2|x|.
template <class Target>
[[gnu::always_inline]] inline Floats<Target> tanh_of_floats(const Floats<Target>& x,
                                                            const Floats<Target>& size) {
  using V = Floats<Target>;
  const V z = x * x;
  V p = z * -5.704984e-3f + 2.0639084e-2f;
  p = p * z - 5.3739715e-2f;
  p = p * z + 1.3331442e-1f;
  p = p * z - 3.333328e-1f;
  const V near = x * (z * p + 1.0f);
  // Beyond 10, it is 1.
  const V power = exponential<Target>(2.0f * (size < 10.0f ? size : V{} + 10.0f));
  const V far = 1.0f - 2.0f / (power + 1.0f);
  // No comparison holds for NaN.
  return size >= 0.625f ? (x < 0.0f ? -far : far) : near;
}
template <class Target, class C>
[[gnu::always_inline]] inline Vector<Target, C> tanh(const Vector<Target, C>& x) {
  if constexpr (std::is_same_v<C, float>) {
    return Vector<Target, C>(tanh_of_floats<Target>(x.v, abs(x).v));
  } else {
    using V = Vector<Target, C>;
    constexpr double kSeries[] = {
        -2.0289800612514075e-05, 8.465718640250347e-05, -0.00023435314845645768,
        0.0005888400422537283,   -0.001455642111220305, 0.0035921078811045905,
        -0.00886323420601293,    0.02186948848524601,   -0.05396825396724726,
        0.13333333333332556,     -0.3333333333333333};
    const V size = abs(x), square = x * x, power = exp(size + size);
    const V near = size + size * square * polynomial(square, kSeries);
    return with_sign(select(size > V(0.55), V(1) - V(2) / (power + V(1)), near), x);
  }
}

}  // namespace renga::simd
