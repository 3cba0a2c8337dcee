// Element-wise functions of arrays, which arithmetic, math and activation functions are built on.
#pragma once

#include <cstdint>

#include "devices/kernel_table.h"
#include "tensor/array.h"

namespace renga {

// Functions of one element. Comments name the parameters p and q of those that have any.
enum class Unary : std::uint8_t {
  negative,
  absolute,
  sign,
  square,
  floor,
  ceil,
  trunc,
  // The functions from here on are for floating point only: parameters are floats, which would
  // round large integers.
  add,                // x + p
  multiply,           // x * p
  subtract_from,      // p - x
  divide_into,        // p / x
  power,              // x ** p
  cube,               // x ** 3
  power_of,           // p ** x
  clip,               // between p and q
  inside,             // 1 where p <= x <= q, else 0
  floor_divide,       // floor(x / p), as Python's floats divide
  floor_divide_into,  // floor(p / x)
  exp,
  expm1,
  log,
  log1p,
  log2,
  log10,
  sqrt,
  rsqrt,
  sin,
  cos,
  tan,
  arcsin,
  arccos,
  arctan,
  arctanh,
  sinh,
  cosh,
  tanh,
  erf,
  erfc,
  ndtr,
  erfinv,
  erfcinv,
  ndtri,
  erfcx,
  log_ndtr,
  lgamma,
  digamma,
  sigmoid,
  relu,
  leaky_relu,    // x, or p x where x < 0
  elu,           // q x, or p (exp(x) - 1) where x < 0
  softplus,      // log(1 + exp(p x)) / p
  clipped_relu,  // between 0 and p
  hard_sigmoid,  // 0.2 x + 0.5 between 0 and 1
  hard_swish,    // x clip(x + 3, 0, 6) / 6
  gelu,
  gelu_tanh,  // GELU's approximation by tanh
  silu,
  mish,
};

// Functions of two elements. Integers wrap around; divided by 0 they are 0.
enum class Binary : std::uint8_t {
  add,
  subtract,
  multiply,
  divide,  // floating point only
  floor_divide,
  power,
  maximum,
  minimum,
  greater_equal,  // 1 or 0, in the operands' dtype
  less_equal,
  arctan2,
  fmod,  // the remainder of division, with the sign of a
  // -log sigmoid(a) where the label b is 1, -log(1 - sigmoid(a)) where it is 0; 0 if it is negative
  sigmoid_nll,
  sigmoid_nll_slope,    // its derivative
  bernoulli_nll,        // softplus(a) - a b
  bernoulli_nll_slope,  // its derivative, sigmoid(a) - b
  huber,                // d² / 2 where |d| < p, else p (|d| - p / 2), of the difference d
  squared_difference,
  prelu,        // a, or b a where a < 0
  prelu_slope,  // 1, or b where a < 0
  // Gradients: a is the function's output (x for leaky_relu, elu and from hard_sigmoid on), b is
  // gy.
  relu_grad,          // b where a > 0
  leaky_relu_grad,    // b where a > 0, else p b
  softplus_grad,      // b sigmoid(p a)
  elu_grad,           // b where a > 0, else p b e^a
  sigmoid_grad,       // b a (1 - a)
  tanh_grad,          // b (1 - a²)
  clipped_relu_grad,  // b where 0 < a < p
  hard_sigmoid_grad,  // 0.2 b where |a| < 2.5
  hard_swish_grad,
  gelu_grad,
  gelu_tanh_grad,
  silu_grad,
  mish_grad,
  erf_grad,
  // The functions from here on take floats alone.
  polygamma,  // derivative a of digamma(b); a is an integer
  zeta,       // Hurwitz's: the sum over k of (b + k)^-(a + p)
};

// Functions of four elements, some of which may be the same.
enum class Quaternary : std::uint8_t {
  interpolate,  // a b + (1 - a) c
  rotate,       // a c - b d
  difference,   // (a - b) c, where the difference is limited to -d and d
};

struct ElementwiseKernels {
  // x and y have the same shape and dtype.
  void (*unary)(Unary map, double p, double q, const Array& x, const Array& y);
  // All are of one shape (broadcasts have stride 0) and dtype; the host also takes float32 and
  // bfloat16 together, for quaternary functions if y has no gaps.
  void (*binary)(Binary map, double p, const Array& a, const Array& b, const Array& y);
  void (*quaternary)(Quaternary map, const Array& a, const Array& b, const Array& c, const Array& d,
                     const Array& y);
  // y = condition ? a : b; `condition` is bool.
  void (*select)(const Array& condition, const Array& a, const Array& b, const Array& y);
};
extern KernelTable<ElementwiseKernels> elementwise_kernels;

// The computing thread calls this, with NumPy's text, if integers were divided by 0 or a quotient
// overflowed. It may throw. It is nullptr by default.
extern void (*arithmetic_warning)(const char* text);

// Return new arrays. Operands broadcast; `op` names the caller in errors.
Array apply(Unary map, const Array& x, double p = 0, double q = 0);
Array apply(const char* op, Binary map, const Array& a, const Array& b, double p = 0);
Array apply(const char* op, Quaternary map, const Array& a, const Array& b, const Array& c,
            const Array& d);
Array select(const char* op, const Array& condition, const Array& a, const Array& b);

}  // namespace renga
