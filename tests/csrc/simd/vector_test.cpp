// Vectors of each target that the machine has, lane by lane against single numbers.
#include "simd/vector.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <vector>

using namespace renga;
using simd::run_on, simd::Vector;

namespace {

template <class C>
std::vector<C> special_numbers() {
  const C inf = std::numeric_limits<C>::infinity(), nan = std::numeric_limits<C>::quiet_NaN();
  return {C(0), C(-0.0), C(1), C(-1), inf, -inf, nan, std::numeric_limits<C>::denorm_min()};
}

template <class C>
bool are_same(C a, C b) {
  return std::memcmp(&a, &b, sizeof a) == 0;
}

// The lanes of x, y and f(x, y), for all pairs of special numbers.
template <class Target, class C, class F, class G>
void check_pairs(const F& of_vectors, const G& of_numbers) {
  using V = Vector<Target, C>;
  const std::vector<C> numbers = special_numbers<C>();
  for (std::size_t shift = 0; shift < numbers.size(); ++shift) {
    C x[V::width], y[V::width], z[V::width];
    for (std::size_t i = 0; i < V::width; ++i) {
      x[i] = numbers[i % numbers.size()];
      y[i] = numbers[(i + shift) % numbers.size()];
    }
    run_on<Target>([&](auto) __attribute__((always_inline)) {
      V::store(of_vectors(V(V::load(x)), V(V::load(y))), z);
    });
    for (int i = 0; i < V::width; ++i) CHECK(are_same(z[i], of_numbers(x[i], y[i])));
  }
}

template <class Target, class C>
void check_vectors() {
  using V = Vector<Target, C>;
#define RENGA_CHECK_CHOICE(of_vectors, of_numbers)                                   \
  check_pairs<Target, C>(                                                            \
      [](const V& a, [[maybe_unused]] const V& b)                                    \
          __attribute__((always_inline)) { return select(of_vectors, V(C(2)), a); }, \
      [](C a, [[maybe_unused]] C b) { return of_numbers ? C(2) : a; })
  RENGA_CHECK_CHOICE(a == b, a == b);
  RENGA_CHECK_CHOICE(a < b, a < b);
  RENGA_CHECK_CHOICE(a <= b, a <= b);
  RENGA_CHECK_CHOICE(a > b, a > b);
  RENGA_CHECK_CHOICE(a >= b, a >= b);
  RENGA_CHECK_CHOICE((a < b) && (b < V(C(3))), (a < b) && (b < C(3)));
  RENGA_CHECK_CHOICE(isnan(a), std::isnan(a));
#undef RENGA_CHECK_CHOICE
  check_pairs<Target, C>(
      [](const V& a, const V& b) __attribute__((always_inline)) { return max(a, b); },
      [](C a, C b) { return a > b ? a : b; });
  check_pairs<Target, C>(
      [](const V& a, const V& b) __attribute__((always_inline)) { return min(a, b); },
      [](C a, C b) { return a < b ? a : b; });
  check_pairs<Target, C>(
      [](const V& a, const V&) __attribute__((always_inline)) { return abs(a); },
      [](C a, C) { return std::abs(a); });
  C lanes[V::width], number = C(-0.0);
  for (int i = 0; i < V::width; ++i) lanes[i] = C(i + 1);
  run_on<Target>([&](auto) __attribute__((always_inline)) {
    V::store(V::masked(0xa5a5, V::load(lanes)), lanes);
  });
  for (int i = 0; i < V::width; ++i) CHECK(lanes[i] == (0xa5a5 >> i & 1 ? C(i + 1) : C(0)));
  run_on<Target>([&](auto) __attribute__((always_inline)) { V::store(V(number), lanes); });
  for (const C lane : lanes) CHECK(are_same(lane, number));
}

// Numbers that T has, to vectors of C and back.
template <class Target, class C, class T>
void check_conversion() {
  using V = Vector<Target, C>;
  T from[V::width], to[V::width];
  C numbers[V::width];
  for (int i = 0; i < V::width; ++i) from[i] = T(static_cast<float>(7 * i + 3));
  run_on<Target>([&](auto) __attribute__((always_inline)) {
    V::store(V::load(from), numbers);
    V::store(V::load(numbers), to);
  });
  for (int i = 0; i < V::width; ++i) {
    CHECK(numbers[i] == C(7 * i + 3));
    CHECK(static_cast<float>(to[i]) == static_cast<float>(7 * i + 3));
  }
}

template <class Target>
void check_target() {
  check_vectors<Target, float>();
  check_vectors<Target, double>();
  check_conversion<Target, float, float16>();
  check_conversion<Target, float, bfloat16>();
  check_conversion<Target, float, std::uint8_t>();
  check_conversion<Target, float, std::int32_t>();
  check_conversion<Target, double, std::uint8_t>();
  check_conversion<Target, double, std::int32_t>();
}

}  // namespace

TEST_CASE("vectors compute what single numbers do") {
  check_target<simd::Avx2>();
#if defined(__x86_64__)
  if (simd::has_avx512()) check_target<simd::Avx512>();
#endif
}
