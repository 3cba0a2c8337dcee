// Powers, angles and remainders of vectors are computed here. Results for floats are computed in
// double and rounded once: they are within 0.6 units in the last place. Results for doubles are
// within 2 units.
#pragma once

#include <cmath>
#include <numbers>

#include "simd/vector.h"
#include "tensor/polynomial.h"

namespace renga::simd {

// f(x...) of vectors of doubles; floats are converted and back.
template <class F, class Target, class... In>
[[gnu::always_inline]] inline Vector<Target, float> in_doubles(const F& f,
                                                               const Vector<Target, float>& first,
                                                               const In&... more) {
  using D = Vector<Target, double>;
  using Half [[gnu::vector_size(2 * Target::width)]] = float;
  return [&]<int... i>(std::integer_sequence<int, i...>) __attribute__((always_inline)) {
    constexpr int kLanes = sizeof...(i);
    const auto lower = [](const Floats<Target>& v) __attribute__((always_inline)) {
      return D(__builtin_convertvector(__builtin_shufflevector(v, v, i...), typename D::V));
    };
    const auto upper = [](const Floats<Target>& v) __attribute__((always_inline)) {
      return D(
          __builtin_convertvector(__builtin_shufflevector(v, v, (kLanes + i)...), typename D::V));
    };
    const Half begin = __builtin_convertvector(f(lower(first.v), lower(more.v)...).v, Half);
    const Half end = __builtin_convertvector(f(upper(first.v), upper(more.v)...).v, Half);
    // Not put together in memory, where a load of both waits for the stores.
    return Vector<Target, float>(__builtin_shufflevector(begin, end, i..., (kLanes + i)...));
  }
  (std::make_integer_sequence<int, D::width>());
}
template <class F, class Target, class... In>
[[gnu::always_inline]] inline Vector<Target, double> in_doubles(const F& f,
                                                                const Vector<Target, double>& first,
                                                                const In&... more) {
  return f(first, more...);
}

// f(a, b) of each pair of numbers.
template <class Target, class C, class F>
[[gnu::always_inline]] inline Vector<Target, C> one_by_one(const F& f, const Vector<Target, C>& a,
                                                           const Vector<Target, C>& b) {
  using V = Vector<Target, C>;
  C u[V::width], v[V::width];
  V::store(a.v, u);
  V::store(b.v, v);
  for (int k = 0; k < V::width; ++k) u[k] = f(u[k], v[k]);
  return V(V::load(u));
}

// The bits of floats as integers.
template <class D>
using BitsOf = typename D::Lanes;
template <class D>
[[gnu::always_inline]] inline BitsOf<D> bits_of(const D& x) {
  return reinterpret_cast<BitsOf<D>>(x.v);
}
template <class D>
[[gnu::always_inline]] inline D from_bits(const BitsOf<D>& bits) {
  return D(reinterpret_cast<typename D::V>(bits));
}
// That of the sign.
template <class D>
inline constexpr auto kSign = std::numeric_limits<std::decay_t<decltype(BitsOf<D>{}[0])>>::min();

// |x| with the sign of y.
template <class D>
[[gnu::always_inline]] inline D with_sign(const D& x, const D& y) {
  return from_bits<D>((bits_of(x) & ~kSign<D>) | (bits_of(y) & kSign<D>));
}

// Returns a b - c, rounded once: where c is the rounded product, what its rounding lost.
template <class D>
[[gnu::always_inline]] inline D product_less(const D& a, const D& b, const D& c) {
  D y = a;
#if defined(__FMA__)
  if constexpr (std::is_same_v<typename D::value_type, double>) {
    asm("vfmsub213pd %2, %1, %0" : "+v"(y.v) : "v"(b.v), "v"(c.v));
  } else {
    asm("vfmsub213ps %2, %1, %0" : "+v"(y.v) : "v"(b.v), "v"(c.v));
  }
#else
  for (int k = 0; k < D::width; ++k) y.v[k] = std::fma(a.v[k], b.v[k], -c.v[k]);
#endif
  return y;
}

// Added and subtracted again, it leaves the nearest integer of numbers up to 2^51.
inline constexpr double kRounding = 0x1.8p52;
template <class D>
[[gnu::always_inline]] inline D nearest(const D& x) {
  return (x + D(kRounding)) - D(kRounding);
}
template <class D>
[[gnu::always_inline]] inline D rounded_down(const D& x) {
  const D n = nearest(x);
  return select(n > x, n - D(1), n);
}

// a - b; those of infinities and NaN wrap around.
template <class D>
[[gnu::always_inline]] inline BitsOf<D> difference_of_bits(const BitsOf<D>& a, const BitsOf<D>& b) {
  using Lane = std::make_unsigned_t<std::decay_t<decltype(a[0])>>;
  using Lanes [[gnu::vector_size(sizeof(BitsOf<D>))]] = Lane;
  return reinterpret_cast<BitsOf<D>>(reinterpret_cast<Lanes>(a) - reinterpret_cast<Lanes>(b));
}

// m 2^exponent, where m is between the roots of 1/2 and of 2.
template <class D>
struct Mantissa {
  D m, exponent;
};
// Returns the Mantissa of positive normal doubles.
template <class D>
[[gnu::always_inline]] inline Mantissa<D> mantissa(const D& x) {
  constexpr std::int64_t bias = 1023, root_of_half = 0x3fe6a09e667f3bcd;
  const BitsOf<D> least = BitsOf<D>{} + (root_of_half - (bias << 52));
  const BitsOf<D> k = difference_of_bits<D>(bits_of(x), least) >> 52;  // and the bias
  const BitsOf<D> one = BitsOf<D>{} + (bias << 52);
  return {from_bits<D>(difference_of_bits<D>(bits_of(x), difference_of_bits<D>(k << 52, one))),
          from_bits<D>(k | 0x4330000000000000) - D(0x1p52 + bias)};
}

// Takes positive normal doubles and has a relative error of 2^-38. A series gives the logarithm:
// log m = 2 artanh((m - 1) / (m + 1)).
template <class D>
[[gnu::always_inline]] inline D logarithm_to_base_2(const D& x) {
  const auto [m, exponent] = mantissa(x);
  const D s = (m - D(1)) / (m + D(1)), z = s * s;
  D p = z * D(1.0 / 13) + D(1.0 / 11);
  p = p * z + D(1.0 / 9);
  p = p * z + D(1.0 / 7);
  p = p * z + D(1.0 / 5);
  p = p * z + D(1.0 / 3);
  p = p * z + D(1);
  return exponent + s * p * D(2 * std::numbers::log2e);
}

// 2^x for |x| <= 300, with a relative error of 2^-32, by Taylor's series around an integer.
template <class D>
[[gnu::always_inline]] inline D power_of_2(const D& x) {
  const D shifted = x + D(kRounding);
  const D z = (x - (shifted - D(kRounding))) * D(std::numbers::ln2);
  D p = z * D(1.0 / 40320) + D(1.0 / 5040);
  p = p * z + D(1.0 / 720);
  p = p * z + D(1.0 / 120);
  p = p * z + D(1.0 / 24);
  p = p * z + D(1.0 / 6);
  p = p * z + D(0.5);
  p = p * z + D(1);
  p = p * z + D(1);
  return from_bits<D>(bits_of(p) + (bits_of(shifted) << 52));
}

// 2^n for integers from -1022 to 1023.
template <class D>
[[gnu::always_inline]] inline D integer_power_of_2(const D& n) {
  return from_bits<D>((bits_of(n + D(kRounding)) + 1023) << 52);
}

// p 2^n of any size.
template <class Target>
[[gnu::always_inline]] inline Vector<Target, double> times_power_of_2(
    const Vector<Target, double>& p, const Vector<Target, double>& n) {
  using D = Vector<Target, double>;
#if defined(__x86_64__)
  if constexpr (Target::has_mask_registers) {
    D y;
    asm("vscalefpd %2, %1, %0" : "=v"(y.v) : "v"(p.v), "v"(n.v));
    return y;
  }
#endif
  // 2^n may be too large or small where the product is not.
  const D half = nearest(n * D(0.5));
  return p * integer_power_of_2(half) * integer_power_of_2(n - half);
}

// x = r + n log 2, where n is an integer and |r| at most log(2) / 2, and what r's rounding loses.
template <class D>
struct ReducedDouble {
  D r, n, lost;
};
template <class D>
[[gnu::always_inline]] inline ReducedDouble<D> reduced_double(const D& x) {
  // The first one of these two parts has 41 bits: its products with integers are exact.
  constexpr double ln2_high = 0x1.62e42fefa3p-1, ln2_low = 2.8235290563031577e-13;
  const D n = nearest(x * D(std::numbers::log2e)), high = x - n * D(ln2_high);
  const D r = high - n * D(ln2_low);
  return {r, n, (high - r) - n * D(ln2_low)};
}

// (e^r - 1 - r) / r², with an error of 2^-53 (minimax).
inline constexpr double kExponentialRest[] = {
    2.510038549551032e-08, 2.7620088445409746e-07, 2.7557268459997064e-06, 2.4801521295954376e-05,
    1.9841269863053618e-4, 1.3888888917213717e-3,  8.333333333330062e-3,   4.166666666662413e-2,
    0.16666666666666669,   0.5000000000000001};

// e^x factor, where the factor is a power of 2, within 2 units in the last place.
template <class D>
[[gnu::always_inline]] inline D exponential_of_doubles(const D& x, double exponent_of_factor = 0) {
  const ReducedDouble<D> parts = reduced_double(min(D(711), max(D(-746), x)));  // NaN stays
  const D p = (polynomial(parts.r, kExponentialRest) * parts.r + D(1)) * parts.r + D(1);
  return times_power_of_2(p, parts.n + D(exponent_of_factor));
}

// e^x - 1 within 2 units in the last place.
template <class D>
[[gnu::always_inline]] inline D exponential_less_1_of_doubles(const D& x) {
  const ReducedDouble<D> parts = reduced_double(min(D(710), max(D(-40), x)));
  const D r = parts.r, rest = polynomial(r, kExponentialRest) * r * r + parts.lost;
  // (1 + r + rest) 2^n - 1 by halves, as 2^n is too large for the largest results.
  const D power = integer_power_of_2(parts.n - D(1));
  const D half = (power * r + (power - D(0.5))) + power * rest;
  return select(abs(x) < D(1e-300), x, half + half);
}

// A number and what its rounding loses.
template <class D>
struct Sum {
  D high, low;
};

// a b, of which both have parts.
template <class D>
[[gnu::always_inline]] inline Sum<D> product(const Sum<D>& a, const Sum<D>& b) {
  const D high = a.high * b.high;
  return {high, product_less(a.high, b.high, high) + (a.high * b.low + a.low * b.high)};
}

// The logarithm to base 2 of positive finite doubles with a relative error of 2^-63: log m is
// 2 artanh s for s = (m - 1) / (m + 1), by s + s³ (1/3 + s² (1/5 + …)).
template <class D>
[[gnu::always_inline]] inline Sum<D> exact_logarithm_to_base_2(const D& x) {
  constexpr double kSeries[] = {1.0 / 25, 1.0 / 23, 1.0 / 21, 1.0 / 19, 1.0 / 17, 1.0 / 15,
                                1.0 / 13, 1.0 / 11, 1.0 / 9,  1.0 / 7,  1.0 / 5};
  constexpr double third = 1.0 / 3, rest_of_third = 0x1.5555555555555p-56;
  constexpr double scale = 0x1.71547652b82fep1, rest_of_scale = 0x1.777d0ffda0d24p-55;  // 2 / log 2
  const auto is_small = x < D(std::numeric_limits<double>::min());
  const auto [m, power] = mantissa(D(select(is_small, x * D(0x1p54), x)));
  const D exponent = select(is_small, power - D(54), power);
  const D numerator = m - D(1), denominator = m + D(1), inverse = D(1) / denominator;
  Sum<D> s = {numerator * inverse, D()};
  const D product_of_s = s.high * denominator;
  const D lost = product_less(s.high, denominator, product_of_s);
  s.low = (numerator - product_of_s - lost - s.high * (m - (denominator - D(1)))) * inverse;
  const Sum<D> square = product(s, s);
  const D tail = square.high * polynomial(square.high, kSeries), slope = D(third) + tail;
  const Sum<D> cube =
      product(s, product(square, {slope, (D(third) - slope) + tail + D(rest_of_third)}));
  const D sum = s.high + cube.high;
  const Sum<D> log = product<D>({sum, (s.high - sum) + cube.high + (s.low + cube.low)},
                                {D(scale), D(rest_of_scale)});
  const D total = exponent + log.high;
  return {total, (exponent - total) + log.high + log.low};
}

// y log x, given the logarithm of |x|, with the exceptions of powers: 1 for 1^y and x^0, also if
// the other number is NaN.
template <class D>
[[gnu::always_inline]] inline D exponent_of_power(const D& x, const D& y, const D& log_of_size) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const D size = abs(x);
  const D log =
      select(size == D(0), D(-infinity), select(size == D(infinity), D(infinity), log_of_size));
  const D t = select(log == D(0), D(0), y * log);
  return select(y == D(0), D(0), select(isnan(x), x, t));
}

// x^y, given |x|^y and which numbers are even or other integers, with the exceptions of the C
// standard.
template <class D, class M>
[[gnu::always_inline]] inline D power_with_sign(const D& x, const D& positive, const M& is_even,
                                                const M& is_integer) {
  const D odd = from_bits<D>(bits_of(positive) ^ (bits_of(x) & kSign<D>));
  const D undefined = D(std::numeric_limits<double>::quiet_NaN());
  const D other =
      select((x < D(0)) && (x > D(-std::numeric_limits<double>::infinity())), undefined, positive);
  return select(is_even, positive, select(is_integer, odd, other));
}

// x^y of doubles that are floats.
template <class D>
[[gnu::always_inline]] inline D power_of_floats(const D& x, const D& y) {
  const D t = exponent_of_power(x, y, logarithm_to_base_2(D(abs(x))));
  // As a float, the power is 0 or infinite beyond the limits. NaN stays.
  const D power = power_of_2(min(D(300), max(D(-300), t)));
  // Even and odd integers; floats from 2^24 on are even.
  const D whole = min(D(0x1p30), abs(y)), half = whole * D(0.5);
  return power_with_sign(x, select(isnan(t), t, power), nearest(half) == half,
                         nearest(whole) == whole);
}

template <class D>
[[gnu::always_inline]] inline D power_of_doubles(const D& x, const D& y) {
  const Sum<D> log = exact_logarithm_to_base_2(D(abs(x)));
  const D t = exponent_of_power(x, y, log.high), limited = min(D(1100), max(D(-1100), t));
  // Exponents within the limits have lost this.
  const D lost = select(abs(t) <= D(1100), product_less(y, log.high, t) + y * log.low, D(0));
  const D n = nearest(limited);
  const D z = ((limited - n) + select(t == D(0), D(0), lost)) * D(std::numbers::ln2);
  const D p = (polynomial(z, kExponentialRest) * z + D(1)) * z + D(1);
  const D positive = select(isnan(t), t, times_power_of_2(p, n));
  if (all(x > D(0))) return positive;
  const D size = abs(y), half = size * D(0.5);
  const auto is_integer = floor(size) == size;
  return power_with_sign(x, positive, (floor(half) == half) && is_integer, is_integer);
}

template <class Target, class C>
[[gnu::always_inline]] inline Vector<Target, C> pow(const Vector<Target, C>& x,
                                                    const Vector<Target, C>& y) {
  if constexpr (std::is_same_v<C, float>) {
    return in_doubles(
        [](const auto& a, const auto& b)
            __attribute__((always_inline)) { return power_of_floats(a, b); },
        x, y);
  } else {
    return power_of_doubles(x, y);
  }
}

// The angle of the point (x, y): that of the smaller coordinate over the larger one is at most an
// eighth of a turn, whose tangent a minimax polynomial inverts with a relative error of 2^-33.
template <class D>
[[gnu::always_inline]] inline D angle_of_floats(const D& y, const D& x) {
  constexpr double kCoefficients[] = {-6.84794194246e-4, 4.85094351060e-3,  -1.61117045909e-2,
                                      3.42096411119e-2,  -5.42791347867e-2, 7.24571973504e-2,
                                      -8.98023955630e-2, 1.10932413441e-1,  -1.42839807674e-1,
                                      1.99999120517e-1,  -3.33333315712e-1, 9.99999999941e-1};
  const D height = abs(y), width = abs(x), most = max(height, width), least = min(height, width);
  D t = select(least == most, D(1), least / most);
  t = select(most == D(0), D(0), t);
  const D z = t * t;
  D angle = t * polynomial(z, kCoefficients);
  angle = select(height > width, D(std::numbers::pi / 2) - angle, angle);
  angle = select(with_sign(D(1), x) < D(0), D(std::numbers::pi) - angle, angle);
  return select(isnan(y), y, select(isnan(x), x, with_sign(angle, y)));
}

// π / 4 in two parts, of which products of the first with integers up to 4 are exact.
inline constexpr double kEighth = 0x1.921fb54442d18p-1, kRestOfEighth = 0x1.1a62633145c07p-55;
inline constexpr double kTangentOfSixteenth = 0.41421356237309503;

// eighths π / 4 + sign atan(u), where |u| is at most the tangent of a sixteenth of a turn.
template <class D>
[[gnu::always_inline]] inline D angle_from(const D& eighths, const D& u, const D& sign) {
  constexpr double kSeries[] = {-0.01917627151752634,  0.039231155619872305,  -0.050854323376990767,
                                0.058581455876282017,  -0.066645110645993717, 0.076921831636508939,
                                -0.090909045769541168, 0.11111111015227571,   -0.14285714284666185,
                                0.19999999999995519,   -0.3333333333333333};
  const D square = u * u, angle = u + u * square * polynomial(square, kSeries);
  return eighths * D(kEighth) + (eighths * D(kRestOfEighth) + angle * sign);
}

template <class D>
[[gnu::always_inline]] inline D angle_of_doubles(const D& y, const D& x) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const D height = abs(y), width = abs(x), most = max(height, width), least = min(height, width);
  // Arguments are taken as (1, 0), (1, 1) or their reflections if a number is infinite, and (0, 0)
  // as (1, 0).
  const auto is_infinite = most == D(infinity);
  const D finite = select(is_infinite, D(1), select(most == D(0), D(1), most));
  const D scale = select(finite > D(1), D(0.25), D(1)), longer = finite * scale;  // finite sums
  const D shorter = select(is_infinite, select(least == most, D(1), D(0)), least * scale);
  const auto is_between = shorter > longer * D(kTangentOfSixteenth);
  const D u =
      select(is_between, shorter - longer, shorter) / select(is_between, shorter + longer, longer);
  const auto is_steep = height > width;
  const D upright = with_sign(D(1), x);
  const auto is_left = upright < D(0);
  const D first = select(is_between, D(1), D(0));
  const D second = select(is_steep, D(2) - first, first);
  const D eighths = select(is_left, D(4) - second, second);
  const D angle = angle_from(eighths, u, select(is_steep, -upright, upright));
  return select(isnan(y), y, select(isnan(x), x, with_sign(angle, y)));
}

template <class Target, class C>
[[gnu::always_inline]] inline Vector<Target, C> atan2(const Vector<Target, C>& y,
                                                      const Vector<Target, C>& x) {
  if constexpr (std::is_same_v<C, float>) {
    return in_doubles(
        [](const auto& a, const auto& b)
            __attribute__((always_inline)) { return angle_of_floats(a, b); },
        y, x);
  } else {
    return angle_of_doubles(y, x);
  }
}

// f(a, b) by vectors of doubles for quotients below a limit, up to which integers next to them are
// found; for others by `other`, one by one.
template <class Target, class C, class F, class Other>
[[gnu::always_inline]] inline Vector<Target, C> by_quotients(const Vector<Target, C>& a,
                                                             const Vector<Target, C>& b, const F& f,
                                                             const Other& other) {
  using V = Vector<Target, C>;
  constexpr C limit = std::is_same_v<C, float> ? 0x1p24 : 0x1p51;
  constexpr C largest = std::numeric_limits<C>::max();
  const auto are_found = (abs(a / b) < V(limit)) && (abs(b) <= V(largest));
  const V y = in_doubles(f, a, b);
  return all(are_found) ? y : select(are_found, y, one_by_one(other, a, b));
}

// Remainders u - n v are exact. Where a quotient is rounded up to an integer, n is too large by 1.
template <class Target, class C>
[[gnu::always_inline]] inline Vector<Target, C> fmod(const Vector<Target, C>& a,
                                                     const Vector<Target, C>& b) {
  return by_quotients(
      a, b, []<class D>(const D& u, const D& v) __attribute__((always_inline)) {
        const D size = abs(v);
        const D remainder = -product_less(rounded_down(D(abs(u / v))), size, D(abs(u)));
        return with_sign(select(remainder < D(0), remainder + size, remainder), u);
      },
      [](C u, C v) { return std::fmod(u, v); });
}

// floor(a / b), which `of_numbers` computes of single ones.
template <class Target, class C, class Other>
[[gnu::always_inline]] inline Vector<Target, C> floor_quotient(const Vector<Target, C>& a,
                                                               const Vector<Target, C>& b,
                                                               const Other& of_numbers) {
  return by_quotients(
      a, b, []<class D>(const D& u, const D& v) __attribute__((always_inline)) {
        const D quotient = u / v, n = rounded_down(quotient);
        const D remainder = from_bits<D>(bits_of(-product_less(n, v, u)) ^ (bits_of(v) & kSign<D>));
        return with_sign(select(remainder < D(0), n - D(1), n), quotient);
      },
      of_numbers);
}

}  // namespace renga::simd
