// Code that is compiled for several instruction sets, of which the best one is chosen at run time.
#pragma once

#include <type_traits>

#include "simd/cpu_features.h"
#include "tensor/half.h"

namespace renga::simd {

// Targets: floats per vector, and whether there are registers of masks and dot products of bfloat16
// numbers. Where there is no AVX, the compiler makes two or more instructions of one on eight
// floats.
struct Avx2 {
  static constexpr int width = 8;
  static constexpr bool has_mask_registers = false, has_bfloat16_dot_product = false;
};
struct Avx512 {
  static constexpr int width = 16;
  static constexpr bool has_mask_registers = true, has_bfloat16_dot_product = false;
};
struct Avx512Bfloat16 {
  static constexpr int width = 16;
  static constexpr bool has_mask_registers = true, has_bfloat16_dot_product = true;
};

// A copy of the body, if that only copies memory: what it holds stays in registers then, as nothing
// that it stores can change it.
template <class Body>
using Held = std::conditional_t<std::is_trivially_copyable_v<Body>, const Body, const Body&>;

// Compiled for one target, with everything inlined that is marked so.
template <class Body>
[[gnu::noinline]] void run_on_avx2(const Body& body) {
  const Held<Body> held = body;
  held(Avx2{});
}
#if defined(__x86_64__)
template <class Body>
[[gnu::noinline, gnu::target("avx512f,avx512vl,avx512dq,avx512bw")]] void run_on_avx512(
    const Body& body) {
  const Held<Body> held = body;
  held(Avx512{});
}
template <class Body>
[[gnu::noinline, gnu::target("avx512f,avx512vl,avx512dq,avx512bw,avx512bf16")]] void
run_on_avx512_bfloat16(const Body& body) {
  const Held<Body> held = body;
  held(Avx512Bfloat16{});
}
#endif

template <class Target, class Body>
void run_on(const Body& body) {
  if constexpr (std::is_same_v<Target, Avx2>) run_on_avx2(body);
#if defined(__x86_64__)
  if constexpr (std::is_same_v<Target, Avx512>) run_on_avx512(body);
  if constexpr (std::is_same_v<Target, Avx512Bfloat16>) run_on_avx512_bfloat16(body);
#endif
}

// Calls body(target) with the best target of the machine. The body is a lambda marked
// always_inline. With Number = bfloat16, the target has dot products of them; the caller has tested
// that.
template <class Number, class Body>
void dispatch(const Body& body) {
#if defined(__x86_64__)
  if constexpr (std::is_same_v<Number, bfloat16>) {
    run_on_avx512_bfloat16(body);
  } else if (has_bfloat16_dot_product()) {
    run_on_avx512_bfloat16(body);
  } else if (has_avx512()) {
    run_on_avx512(body);
  } else {
    run_on_avx2(body);
  }
#else
  // No other processor is asked for dot products of bfloat16.
  if constexpr (!std::is_same_v<Number, bfloat16>) run_on_avx2(body);
#endif
}

// Calls a body that loads and stores elements of type T and multiplies floats, with the best
// target. Unless T is bfloat16, instructions for bfloat16 make no difference, and the body is not
// compiled for them.
template <class T, class Body>
void dispatch_for(const Body& body) {
  if constexpr (std::is_same_v<T, bfloat16>) {
    dispatch<float>(body);
  } else {
    has_avx512() ? run_on<Avx512>(body) : run_on<Avx2>(body);
  }
}

}  // namespace renga::simd
