// Elementary functions of vectors, found by their argument. They are renga's own, for all targets;
// only sines and tangents of large numbers are xsimd's, of vectors as wide as the instructions that
// all of the library is compiled for.
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

#if defined(__AVX__)
// Rounded as the number of a mode says.
template <int mode, class Target, class C>
[[gnu::always_inline]] inline Vector<Target, C> rounded(const Vector<Target, C>& x) {
  constexpr bool is_single = std::is_same_v<C, float>;
  Vector<Target, C> y;
  if constexpr (Target::has_mask_registers) {
    if constexpr (is_single) asm("vrndscaleps %2, %1, %0" : "=v"(y.v) : "v"(x.v), "i"(mode));
    if constexpr (!is_single) asm("vrndscalepd %2, %1, %0" : "=v"(y.v) : "v"(x.v), "i"(mode));
  } else {
    if constexpr (is_single) asm("vroundps %2, %1, %0" : "=x"(y.v) : "x"(x.v), "i"(mode));
    if constexpr (!is_single) asm("vroundpd %2, %1, %0" : "=x"(y.v) : "x"(x.v), "i"(mode));
  }
  return y;
}
#define RENGA_ROUNDING(name, mode)                                                   \
  template <class Target, class C>                                                   \
  [[gnu::always_inline]] inline Vector<Target, C> name(const Vector<Target, C>& x) { \
    return rounded<mode>(x);                                                         \
  }
#else
#define RENGA_ROUNDING(name, mode)                                                   \
  template <class Target, class C>                                                   \
  [[gnu::always_inline]] inline Vector<Target, C> name(const Vector<Target, C>& x) { \
    return by_xsimd(x, [](const auto& batch) { return xsimd::name(batch); });        \
  }
#endif
RENGA_ROUNDING(floor, 9)
RENGA_ROUNDING(ceil, 10)
RENGA_ROUNDING(trunc, 11)
#undef RENGA_ROUNDING

#if defined(__x86_64__)
// Computes the roots of numbers that are neither very small nor infinite. From 1 / √x with 14 bits,
// it takes two steps that double them for doubles and one for floats, and one for the rounding of
// the root.
template <class V>
[[gnu::always_inline]] inline V root_by_steps(const V& x) {
  constexpr bool is_double = std::is_same_v<typename V::value_type, double>;
  V inverse;
  if constexpr (is_double) {
    asm("vrsqrt14pd %1, %0" : "=v"(inverse.v) : "v"(x.v));
  } else {
    asm("vrsqrt14ps %1, %0" : "=v"(inverse.v) : "v"(x.v));
  }
  V root = x * inverse, half = inverse * V(0.5f);
  for (int step = 0; step < (is_double ? 2 : 1); ++step) {
    const V error = V(0.5f) - root * half;
    root = root + root * error;
    half = half + half * error;
  }
  return root + (x - root * root) * half;
}
#endif

template <class Target, class C>
[[gnu::always_inline]] inline Vector<Target, C> sqrt(const Vector<Target, C>& x) {
#if defined(__AVX__)
  using V = Vector<Target, C>;
  V y;
  if constexpr (Target::has_mask_registers) {
    constexpr C least = std::is_same_v<C, float> ? 1e-20 : 1e-250;
    if (all((x > V(least)) && (x <= V(std::numeric_limits<C>::max())))) return root_by_steps(x);
  }
  if constexpr (std::is_same_v<C, float>) {
    asm("vsqrtps %1, %0" : "=v"(y.v) : "v"(x.v));
  } else {
    asm("vsqrtpd %1, %0" : "=v"(y.v) : "v"(x.v));
  }
  return y;
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

// x = r + lost + quarters π / 2, where quarters is the nearest integer, of which the last bits are
// given, and `lost` is what the rounding of r loses.
template <class V>
struct Quarters {
  V r, lost;
  BitsOf<V> quarters;
};

// Takes |x| up to 2^16, that of doubles up to 2^20.
template <class V>
[[gnu::always_inline]] inline Quarters<V> quarters_of(const V& x) {
  using C = typename V::value_type;
  constexpr bool is_double = std::is_same_v<C, double>;
  constexpr C round = is_double ? C(0x1.8p52) : C(0x1.8p23);  // leaves an integer
  // π / 2 in three parts, whose products are subtracted with one rounding.
  constexpr C high = is_double ? 0x1.921fb54442d18p0 : 1.57079625;
  constexpr C middle = is_double ? 0x1.1a62633145c07p-54 : 7.54978942e-8;
  constexpr C low = is_double ? -0x1.f1976b7ed8fbcp-110 : 5.39030286e-15;
  const V shifted = x * V(C(2 / std::numbers::pi)) + V(round);
  const V n = shifted - V(round), most = x - n * V(high);
  const V more = n * V(middle), r = most - more;
  const V lost = ((most - r) - more) - (product_less(n, V(middle), more) + n * V(low));
  return {r, lost, bits_of(shifted)};
}
// Whether the number of quarters is odd.
template <class V>
[[gnu::always_inline]] inline auto is_odd(const BitsOf<V>& quarters) {
  return from_bits<V>((quarters & 1) << (8 * sizeof(typename V::value_type) - 2)) > V(0);
}

// sin(x + quarters π / 2) for such numbers.
template <class Target, class C>
[[gnu::always_inline]] inline Vector<Target, C> sine_of_quarters(const Vector<Target, C>& x,
                                                                 int quarters) {
  using V = Vector<Target, C>;
  const Quarters<V> parts = quarters_of(x);
  const V r = parts.r + parts.lost, square = r * r;
  V sine, cosine;
  if constexpr (std::is_same_v<C, double>) {
    sine = polynomial(square, kDoubleSine), cosine = polynomial(square, kDoubleCosine);
  } else {
    sine = polynomial(square, kFloatSine), cosine = polynomial(square, kFloatCosine);
  }
  sine = r + r * square * sine;
  cosine = square * square * cosine - square * V(C(0.5)) + V(1);
  const BitsOf<V> quarter = parts.quarters + quarters;
  const V size = select(is_odd<V>(quarter), cosine, sine);
  return from_bits<V>(bits_of(size) ^ ((quarter & 2) << (8 * sizeof(C) - 2)));
}
// tan(x) for such numbers, by a minimax polynomial.
template <class V>
[[gnu::always_inline]] inline V tangent_of_quarters(const V& x) {
  constexpr float kFloatSeries[] = {0.00384355598f, 0.0011846202f, 0.0099625861f, 0.0216210022f,
                                    0.0539944806f,  0.133332309f,  0.33333334f};
  constexpr double kDoubleSeries[] = {
      8.4853160727013227e-6, -1.8323519064364185e-5, 3.6531316641087258e-5, -1.1030080532725273e-5,
      5.5599541083010842e-5, 8.9979512590282782e-5,  2.412282918388211e-4,  5.8957514227422841e-4,
      0.0014559028161905395, 0.0035921209718821147,  0.0088632360041162823, 0.021869488517047051,
      0.053968253968656077,  0.13333333333333,       0.33333333333333334};
  const Quarters<V> parts = quarters_of(x);
  const V r = parts.r, square = r * r;
  V slope;
  if constexpr (std::is_same_v<typename V::value_type, double>) {
    slope = polynomial(square, kDoubleSeries);
  } else {
    slope = polynomial(square, kFloatSeries);
  }
  const V more = r * square * slope + (parts.lost + parts.lost * square), y = r + more;
  const V inverse = V(1) / y;
  // The inverse is corrected by what the rounding of y loses.
  const V odd = inverse * (inverse * ((r - y) + more)) - inverse;
  return select(is_odd<V>(parts.quarters), odd, y);
}
// Calls f with such numbers, and `other` with xsimd's vectors for larger ones.
template <class Target, class C, class F, class Other>
[[gnu::always_inline]] inline Vector<Target, C> by_quarters(const Vector<Target, C>& x, const F& f,
                                                            const Other& other) {
  const auto is_small = abs(x) <= Vector<Target, C>(std::is_same_v<C, double> ? 0x1p20 : 0x1p16);
  const auto y = f(x);
  return all(is_small) ? y : select(is_small, y, by_xsimd(x, other));
}
template <class Target, class C>
[[gnu::always_inline]] inline Vector<Target, C> sin(const Vector<Target, C>& x) {
  const auto y = by_quarters(
      x, [](const auto& v) __attribute__((always_inline)) { return sine_of_quarters(v, 0); },
      [](const auto& batch) { return xsimd::sin(batch); });
  return select(x == Vector<Target, C>(0), x, y);  // -0 too
}
template <class Target, class C>
[[gnu::always_inline]] inline Vector<Target, C> cos(const Vector<Target, C>& x) {
  return by_quarters(
      x, [](const auto& v) __attribute__((always_inline)) { return sine_of_quarters(v, 1); },
      [](const auto& batch) { return xsimd::cos(batch); });
}
template <class Target, class C>
[[gnu::always_inline]] inline Vector<Target, C> tan(const Vector<Target, C>& x) {
  const auto y = by_quarters(
      x, [](const auto& v) __attribute__((always_inline)) { return tangent_of_quarters(v); },
      [](const auto& batch) { return xsimd::tan(batch); });
  return select(x == Vector<Target, C>(0), x, y);  // -0 too
}

// sine + more is the angle of which |x| is the sine, if |x| <= 1 / 2; else half of that of which
// |x| is the cosine.
template <class V>
struct AngleOfSine {
  V sine, more;
};
template <class V>
[[gnu::always_inline]] inline AngleOfSine<V> angle_of_sine(const V& x) {
  constexpr float kFloatSeries[] = {0.0336908472f, 0.0171492384f, 0.0311006627f,
                                    0.0445994015f, 0.0750009454f, 0.166666663f};
  constexpr double kDoubleSeries[] = {
      0.028757851367421565, -0.014851887071247203, 0.017400879442694022, 0.0054575067186403583,
      0.010322814350185779, 0.011479177415184906,  0.013971212973552933, 0.017352392720869973,
      0.022372172942149888, 0.030381944138531247,  0.04464285714635543,  0.074999999999984329,
      0.16666666666666668};
  using C = typename V::value_type;
  const V size = abs(x), rest = (V(1) - size) * V(C(0.5));
  const auto is_far = size > V(C(0.5));
  const V square = select(is_far, rest, size * size), sine = select(is_far, sqrt(rest), size);
  V slope;
  if constexpr (std::is_same_v<C, double>) {
    slope = polynomial(square, kDoubleSeries);
  } else {
    slope = polynomial(square, kFloatSeries);
  }
  return {sine, sine * square * slope};
}
// π / 2 in two parts.
template <class C>
inline constexpr C kQuarter = C(std::numbers::pi / 2);
template <class C>
inline constexpr C kRestOfQuarter =
    std::is_same_v<C, double> ? 0x1.1a62633145c07p-54 : -4.37113883e-8;
template <class Target, class C>
[[gnu::always_inline]] inline Vector<Target, C> asin(const Vector<Target, C>& x) {
  using V = Vector<Target, C>;
  const auto [sine, more] = angle_of_sine(x);
  const V far = (V(kQuarter<C>) - (sine + sine)) - (more + more - V(kRestOfQuarter<C>));
  return with_sign(select(abs(x) > V(C(0.5)), far, sine + more), x);
}
template <class Target, class C>
[[gnu::always_inline]] inline Vector<Target, C> acos(const Vector<Target, C>& x) {
  using V = Vector<Target, C>;
  const auto [sine, more] = angle_of_sine(x);
  const V angle = sine + more, rest(kRestOfQuarter<C>), twice = angle + angle;
  const V near = V(kQuarter<C>) - (with_sign(angle, x) - rest);
  const V left = V(2 * kQuarter<C>) - (twice - (rest + rest));
  return select(abs(x) > V(C(0.5)), select(x < V(0), left, twice), near);
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
  const V u = x + V(1), y = log(u), more = y + (x - (u - V(1))) / u;
  const auto is_finite = (u > V(0)) && (u <= V(std::numeric_limits<C>::max()));
  const V tiny(std::is_same_v<C, double> ? C(1e-300) : C(1e-30));
  return select(abs(x) < tiny, x, select(is_finite, more, y));
}
// e^|x| / 2, which overflows later than the power.
template <class Target, class C>
[[gnu::always_inline]] inline Vector<Target, C> half_of_power(const Vector<Target, C>& x) {
  using V = Vector<Target, C>;
  if constexpr (std::is_same_v<C, float>) {
    const ScaledPower<Target> power = scaled_power<Target>(min(V(90), abs(x)).v);  // NaN stays
    return V(times_any_power<Target>(power.p, power.n - 1.0f));
  } else {
    return exponential_of_doubles(abs(x), -1);
  }
}
// Near 0 by Taylor's series.
template <class Target, class C>
[[gnu::always_inline]] inline Vector<Target, C> sinh(const Vector<Target, C>& x) {
  using V = Vector<Target, C>;
  constexpr float kFloatSeries[] = {1.0f / 39916800, 1.0f / 362880, 1.0f / 5040, 1.0f / 120,
                                    1.0f / 6};
  constexpr double kDoubleSeries[] = {
      8.2206352466243297e-18, 2.8114572543455206e-15, 7.6471637318198164e-13,
      1.6059043836821613e-10, 2.5052108385441720e-8,  2.7557319223985893e-6,
      1.9841269841269841e-4,  8.3333333333333332e-3,  0.16666666666666666};
  const V square = x * x, half = half_of_power(x), far = half - V(C(0.25)) / half;
  V slope;
  if constexpr (std::is_same_v<C, float>) {
    slope = polynomial(square, kFloatSeries);
  } else {
    slope = polynomial(square, kDoubleSeries);
  }
  return select(abs(x) > V(1), with_sign(far, x), x + x * square * slope);
}
template <class Target, class C>
[[gnu::always_inline]] inline Vector<Target, C> cosh(const Vector<Target, C>& x) {
  const Vector<Target, C> half = half_of_power(x);
  return half + Vector<Target, C>(C(0.25)) / half;
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
// Computes the arctangent of floats by a minimax polynomial of x or 1 / x, of doubles around the
// nearest eighth of a turn.
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
    return with_sign(y, x);
  } else {
    const V size = abs(x);
    const auto is_between = size > V(kTangentOfSixteenth),
               is_steep = size > V(2 + kTangentOfSixteenth);
    const V numerator = select(is_steep, V(-1), select(is_between, size - V(1), size));
    const V denominator = select(is_steep, size, select(is_between, size + V(1), V(1)));
    const V eighths = select(is_steep, V(2), select(is_between, V(1), V(0)));
    return with_sign(angle_from(eighths, numerator / denominator, V(1)), x);
  }
}
// Computes atanh of floats by a minimax polynomial near 0, and elsewhere by the logarithm, as that
// of doubles.
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
    const V size = abs(x), twice = size + size;
    const V y = log1p(twice + twice * (size / (V(1) - size))) * V(0.5);
    return select(size <= V(1), with_sign(y, x), V(std::numeric_limits<double>::quiet_NaN()));
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
