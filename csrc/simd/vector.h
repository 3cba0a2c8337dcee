// Vectors of a target, loaded from and stored to arrays of any float dtype, and loops over them.
// Everything is inlined, to be compiled for the target of its caller.
#pragma once

#include <algorithm>
#include <limits>
#include <utility>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "simd/float_vector.h"
#include "simd/scalar.h"
#include "tensor/dtype.h"
#include "tensor/streaming.cpu.h"

namespace renga::simd {

// Keeps a load apart from a following select. The compiler would fuse them into one masked load,
// which waits for the mask.
template <class V>
[[gnu::always_inline]] inline V force_load(V v) {
#if defined(__x86_64__)
  asm("" : "+v"(v));
#endif
  return v;
}

// How instructions number comparisons.
inline constexpr int kEqual = 0, kUnordered = 3, kLess = 0x11, kLessEqual = 0x12;

// Comparisons of vectors of C give such a mask, as the hardware has it: lanes whose bits are all
// set or all clear, or on AVX-512 a mask register. Instructions are named: from masks that are
// values, GCC 12 makes a branch for each lane.
template <class Target, class C>
struct LaneMask {
  using V [[gnu::vector_size(4 * Target::width)]] = C;
  using Lanes [[gnu::vector_size(4 * Target::width)]] =
      std::conditional_t<sizeof(C) == sizeof(float), std::int32_t, std::int64_t>;

  template <int comparison>
  [[gnu::always_inline]] static LaneMask of(const V& a, const V& b) {
    if constexpr (comparison == kEqual) return {a == b};
    if constexpr (comparison == kUnordered) return {(a != a) | (b != b)};
    if constexpr (comparison == kLess) return {a < b};
    if constexpr (comparison == kLessEqual) return {a <= b};
  }
  // The lanes whose bits are set.
  [[gnu::always_inline]] static LaneMask of_bits(std::uint32_t bits) {
    Lanes lane;
    for (int k = 0; k < static_cast<int>(sizeof(V) / sizeof(C)); ++k) lane[k] = 1 << k;
    return {((Lanes{} + static_cast<std::int32_t>(bits)) & lane) == lane};
  }
  [[gnu::always_inline]] friend LaneMask operator&&(const LaneMask& a, const LaneMask& b) {
    return {a.lanes & b.lanes};
  }
  [[gnu::always_inline]] friend LaneMask operator||(const LaneMask& a, const LaneMask& b) {
    return {a.lanes | b.lanes};
  }
  [[gnu::always_inline]] friend bool all(const LaneMask& mask) {
#if defined(__AVX2__)
    if constexpr (sizeof(C) == sizeof(float)) return _mm256_movemask_ps(__m256(mask.lanes)) == 0xff;
    if constexpr (sizeof(C) == sizeof(double))
      return _mm256_movemask_pd(__m256d(mask.lanes)) == 0xf;
#endif
    bool held = true;
    for (std::size_t k = 0; k < sizeof(V) / sizeof(C); ++k) held &= mask.lanes[k] != 0;
    return held;
  }
  [[gnu::always_inline]] V select(const V& yes, const V& no) const {
#if defined(__x86_64__)
    V result;
    asm("vblendvps %3, %2, %1, %0" : "=x"(result) : "x"(no), "x"(yes), "x"(lanes));
    return result;
#else
    return reinterpret_cast<V>((lanes & reinterpret_cast<Lanes>(yes)) |
                               (~lanes & reinterpret_cast<Lanes>(no)));
#endif
  }

  Lanes lanes;
};

template <class Target, class C>
struct RegisterMask {
  using V = typename LaneMask<Target, C>::V;
  static constexpr bool is_single = sizeof(C) == sizeof(float);

  template <int comparison>
  [[gnu::always_inline]] static RegisterMask of(const V& a, const V& b) {
    RegisterMask mask;
    if constexpr (is_single) {
      asm("vcmpps %3, %2, %1, %0" : "=Yk"(mask.bits) : "v"(a), "v"(b), "i"(comparison));
    } else {
      asm("vcmppd %3, %2, %1, %0" : "=Yk"(mask.bits) : "v"(a), "v"(b), "i"(comparison));
    }
    return mask;
  }
  [[gnu::always_inline]] static RegisterMask of_bits(std::uint32_t bits) {
    RegisterMask mask;
    asm("kmovw %1, %0" : "=Yk"(mask.bits) : "r"(bits));
    return mask;
  }
  [[gnu::always_inline]] friend RegisterMask operator&&(const RegisterMask& a,
                                                        const RegisterMask& b) {
    RegisterMask both;
    asm("kandw %2, %1, %0" : "=Yk"(both.bits) : "Yk"(a.bits), "Yk"(b.bits));
    return both;
  }
  [[gnu::always_inline]] friend bool all(const RegisterMask& mask) {
    return mask.bits == (1 << sizeof(V) / sizeof(C)) - 1;
  }
  [[gnu::always_inline]] V select(const V& yes, const V& no) const {
    V result;
    if constexpr (is_single) {
      asm("vblendmps %2, %1, %0%{%3%}" : "=v"(result) : "v"(no), "v"(yes), "Yk"(bits));
    } else {
      asm("vblendmpd %2, %1, %0%{%3%}" : "=v"(result) : "v"(no), "v"(yes), "Yk"(bits));
    }
    return result;
  }

  std::conditional_t<is_single, std::uint16_t, std::uint8_t> bits;
};

// All lanes of v, put together in pairs: those of the first half with those of the second.
template <class V, class Operation, int half = V::width / 2>
[[gnu::always_inline]] inline typename V::value_type fold_lanes(const V& v, const Operation& fold) {
  if constexpr (half == 0) {
    return v.v[0];
  } else {
    const V other = [&]<int... k>(std::integer_sequence<int, k...>) __attribute__((always_inline)) {
      return V(__builtin_shufflevector(v.v, v.v, ((k + half) % V::width)...));
    }
    (std::make_integer_sequence<int, V::width>());
    return fold_lanes<V, Operation, half / 2>(fold(v, other), fold);
  }
}

// A vector of elements of type C, as a value with arithmetic and as functions of V, which is the
// compiler's own type. load() and store() convert elements of a dtype that is computed in C.
template <class Target, class C>
struct Vector {
  using value_type = C;
  using Value = Vector;
  static constexpr int width = 4 * Target::width / static_cast<int>(sizeof(C));
  using V [[gnu::vector_size(4 * Target::width)]] = C;
  using Unaligned [[gnu::vector_size(4 * Target::width), gnu::aligned(4), gnu::may_alias]] = C;
  using UnalignedHalves [[gnu::vector_size(2 * Target::width), gnu::aligned(2), gnu::may_alias]] =
      std::uint16_t;
  using Integers [[gnu::vector_size(4 * width), gnu::aligned(4), gnu::may_alias]] = std::int32_t;
  using Bytes [[gnu::may_alias]] = std::uint8_t[width];
  using Lanes = typename LaneMask<Target, C>::Lanes;
  using M =
      std::conditional_t<Target::has_mask_registers, RegisterMask<Target, C>, LaneMask<Target, C>>;

  Vector() = default;
  // In one instruction; from a number that is no constant the compiler would use one per lane.
  [[gnu::always_inline]] explicit Vector(C x) {
#if defined(__x86_64__)
    if (__builtin_constant_p(x)) {
      v = V{} + x;
    } else if constexpr (sizeof(C) == sizeof(float)) {
      asm("vbroadcastss %1, %0" : "=v"(v) : "v"(x));
    } else {
      asm("vbroadcastsd %1, %0" : "=v"(v) : "v"(x));
    }
#else
    v = x - V{};
#endif
  }
  [[gnu::always_inline]] explicit Vector(const V& x) : v(x) {}

  [[gnu::always_inline]] Vector operator-() const { return Vector(-v); }
  [[gnu::always_inline]] friend Vector operator+(Vector a, Vector b) { return Vector(a.v + b.v); }
  [[gnu::always_inline]] friend Vector operator-(Vector a, Vector b) { return Vector(a.v - b.v); }
  [[gnu::always_inline]] friend Vector operator*(Vector a, Vector b) { return Vector(a.v * b.v); }
  [[gnu::always_inline]] friend Vector operator/(Vector a, Vector b) { return Vector(a.v / b.v); }
  // Comparisons with NaN are false.
  [[gnu::always_inline]] friend M operator==(Vector a, Vector b) { return compare<kEqual>(a, b); }
  [[gnu::always_inline]] friend M operator<(Vector a, Vector b) { return compare<kLess>(a, b); }
  [[gnu::always_inline]] friend M operator<=(Vector a, Vector b) {
    return compare<kLessEqual>(a, b);
  }
  [[gnu::always_inline]] friend M operator>(Vector a, Vector b) { return b < a; }
  [[gnu::always_inline]] friend M operator>=(Vector a, Vector b) { return b <= a; }
  [[gnu::always_inline]] friend M isnan(Vector a) { return compare<kUnordered>(a, a); }
  [[gnu::always_inline]] friend Vector select(M mask, Vector yes, Vector no) {
    return Vector(mask.select(yes.v, no.v));
  }
  // The second operand if either is NaN.
  [[gnu::always_inline]] friend Vector max(Vector a, Vector b) {
    return Vector(a.v > b.v ? a.v : b.v);
  }
  [[gnu::always_inline]] friend Vector min(Vector a, Vector b) {
    return Vector(a.v < b.v ? a.v : b.v);
  }
  [[gnu::always_inline]] friend Vector abs(Vector a) {
    constexpr auto all_but_sign = std::numeric_limits<std::decay_t<decltype(Lanes{}[0])>>::max();
    return Vector(reinterpret_cast<V>(reinterpret_cast<Lanes>(a.v) & all_but_sign));
  }

  // In one instruction; the compiler would use one per lane.
  [[gnu::always_inline]] static V broadcast(const C* from) {
    V v;
#if defined(__x86_64__)
    if constexpr (sizeof(C) == sizeof(float)) {
      asm("vbroadcastss %1, %0" : "=v"(v) : "m"(*from));
    } else {
      asm("vbroadcastsd %1, %0" : "=v"(v) : "m"(*from));
    }
#else
    for (int k = 0; k < width; ++k) v[k] = *from;
#endif
    return v;
  }
  [[gnu::always_inline]] static V load(const C* from) {
    return *reinterpret_cast<const Unaligned*>(from);
  }
  [[gnu::always_inline]] static void store(const V& v, C* to) {
    *reinterpret_cast<Unaligned*>(to) = v;
  }
  [[gnu::always_inline]] static V load(const bfloat16* from) { return load_floats<Target>(from); }
  [[gnu::always_inline]] static void store(const V& v, bfloat16* to) {
    store_floats<Target>(v, to);
  }
  [[gnu::always_inline]] static V load(const float16* from) {
    V v;
#if defined(__x86_64__)
    asm("vcvtph2ps %1, %0" : "=v"(v) : "m"(*reinterpret_cast<const UnalignedHalves*>(from)));
#else
    v = load_each(from);
#endif
    return v;
  }
  [[gnu::always_inline]] static void store(const V& v, float16* to) {
#if defined(__x86_64__)
    asm("vcvtps2ph $0, %1, %0" : "=m"(*reinterpret_cast<UnalignedHalves*>(to)) : "v"(v));
#else
    store_each(v, to);
#endif
  }
  [[gnu::always_inline]] static V load(const std::uint8_t* from) {
#if defined(__AVX2__)
    if constexpr (Target::width == 8 && std::is_same_v<C, float>) {
      const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from));
      return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes));
    }
    if constexpr (Target::width == 16 && std::is_same_v<C, float>) {
      Integers words;
      asm("vpmovzxbd %1, %0" : "=v"(words) : "m"(*reinterpret_cast<const Bytes*>(from)));
      return __builtin_convertvector(words, V);
    }
#endif
    return load_each(from);
  }
  [[gnu::always_inline]] static V load(const std::int32_t* from) {
    return __builtin_convertvector(*reinterpret_cast<const Integers*>(from), V);
  }
  [[gnu::always_inline]] static void store(const V& v, std::uint8_t* to) {
#if defined(__AVX2__)
    if constexpr (Target::width == 8 && std::is_same_v<C, float>) {
      const __m256i words = _mm256_cvttps_epi32(v);
      const __m128i halves =
          _mm_packus_epi32(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
      return _mm_storel_epi64(reinterpret_cast<__m128i*>(to), _mm_packus_epi16(halves, halves));
    }
    if constexpr (Target::width == 16 && std::is_same_v<C, float>) {
      const Integers words = __builtin_convertvector(v, Integers);
      asm("vpmovdb %1, %0" : "=m"(*reinterpret_cast<Bytes*>(to)) : "v"(words));
      return;
    }
#endif
    store_each(v, to);
  }
  [[gnu::always_inline]] static void store(const V& v, std::int32_t* to) {
    *reinterpret_cast<Integers*>(to) = __builtin_convertvector(v, Integers);
  }
  template <class T>
  [[gnu::always_inline]] static void store(const Vector& x, T* to) {
    store(x.v, to);
  }
  // Past the caches (tensor/streaming.cpu.h), to whole vectors.
  [[gnu::always_inline]] static void stream(const V& v, C* to) { renga::stream(v, to); }
  [[gnu::always_inline]] static void stream(const V& v, bfloat16* to) {
    renga::stream(to_bfloat16<Target>(v), to);
  }
  [[gnu::always_inline]] static void stream(const V& v, float16* to) { store(v, to); }
  // Kept apart from a following select.
  template <class T>
  [[gnu::always_inline]] static V load_apart(const T* from) {
    return force_load(load(from));
  }
  // v in the lanes whose bits are set, 0 in the others.
  [[gnu::always_inline]] static V masked(std::uint32_t bits, const V& v) {
    return M::of_bits(bits).select(v, V{});
  }
  // Rounded to T.
  template <class T>
  [[gnu::always_inline]] static V rounded_to(const V& v) {
    if constexpr (std::is_same_v<T, bfloat16>) {
      return from_bfloat16<Target>(to_bfloat16<Target>(v));
    } else if constexpr (std::is_same_v<T, float16>) {
      T halves[width];
      store(v, halves);
      return load(halves);
    } else {
      return v;
    }
  }
  [[gnu::always_inline]] static C sum(const V& v) {
    return fold_lanes(
        Vector(v),
        [](const Vector& a, const Vector& b) __attribute__((always_inline)) { return a + b; });
  }

  V v;

 private:
  template <int comparison>
  [[gnu::always_inline]] static M compare(const Vector& a, const Vector& b) {
    return M::template of<comparison>(a.v, b.v);
  }
  template <class T>
  [[gnu::always_inline]] static V load_each(const T* from) {
    C numbers[width];
    for (int k = 0; k < width; ++k) numbers[k] = static_cast<C>(from[k]);
    return load(numbers);
  }
  template <class T>
  [[gnu::always_inline]] static void store_each(const V& v, T* to) {
    C numbers[width];
    store(v, numbers);
    for (int k = 0; k < width; ++k) to[k] = static_cast<T>(numbers[k]);
  }
};

// Calls body(Vector{}, i), or body(Scalar{}, i) if there are fewer elements than a vector has, for
// the elements from i on, until [begin, n) is covered. The last vector may overlap the one before
// it.
template <class Target, class C, class Body>
[[gnu::always_inline]] inline void for_each_vector(std::int64_t begin, std::int64_t n,
                                                   const Body& body) {
  using L = Vector<Target, C>;
  std::int64_t i = begin;
  if (n < L::width) {
    for (; i < n; ++i) body(Scalar<C>{}, i);
    return;
  }
  // The body is compiled once for vectors.
  for (; i < n; i += L::width) body(L{}, std::min<std::int64_t>(i, n - L::width));
}

}  // namespace renga::simd
