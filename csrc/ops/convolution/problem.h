// One pass of a convolution as kernels take it, and the algorithms that compute it on a device.
#pragma once

#include <cstdint>
#include <vector>

#include "lazy/deferred_parts.h"
#include "ops/matmul/packed_weight_cache.h"
#include "ops/shape/window.h"
#include "tensor/array.h"

namespace renga::convolution {

enum class Pass : std::uint8_t { forward, input_grad, weight_grad };

// The CPU multiplies float32 numbers, or numbers rounded to bfloat16, three times for each float32
// product (bf16x3) or once, by dot products or on tiles.
enum class Arithmetic : std::uint8_t { float32, bf16x3, bfloat16, tiles };

// x is the larger image, y the smaller one, or their gradients; W are the weights or their
// gradient. The pass writes one of the three and reads the others. All have one dtype, except that
// W is float32 for bfloat16 images. What a problem refers to outlives it.
struct Problem {
  // The operands in the order of the formulas: x, W -> y; gy, W -> gx; gy, x -> gW.
  const Array& first() const { return pass == Pass::forward ? x : y; }
  const Array& second() const { return pass == Pass::weight_grad ? x : W; }
  const Array& result() const {
    return pass == Pass::forward ? y : pass == Pass::input_grad ? x : W;
  }
  // Returns the problem of the same pass with other arrays.
  Problem of(const Array& a, const Array& b, const Array& to) const {
    if (pass == Pass::forward) return {pass, a, b, to, window, cache, arithmetic, of_samples};
    if (pass == Pass::input_grad) return {pass, to, b, a, window, cache, arithmetic, of_samples};
    return {pass, b, to, a, window, cache, arithmetic, of_samples};
  }
  bool multiplies_bfloat16() const { return arithmetic >= Arithmetic::bfloat16; }

  // Everything that the choice of an algorithm, or of a library's plan, depends on.
  std::vector<std::int64_t> key() const {
    const int size = 6 + x.shape().size() * 3 + window.pad.size() * 3;
    std::vector<std::int64_t> key(static_cast<std::size_t>(size));
    auto to = key.begin();
    *to++ = static_cast<std::int64_t>(pass);
    *to++ = static_cast<std::int64_t>(arithmetic);
    for (const Array* array : {&x, &W, &y}) *to++ = static_cast<std::int64_t>(array->dtype());
    *to++ = window.groups;
    for (const Dims* dims :
         {&x.shape(), &W.shape(), &y.shape(), &window.stride, &window.pad, &window.dilate}) {
      for (std::int64_t number : *dims) *to++ = number;
    }
    return key;
  }

  Pass pass;
  const Array &x, &W, &y;
  const Window& window;
  PackedWeightCache* cache = nullptr;  // where kernels keep the packed W, if anywhere
  Arithmetic arithmetic = Arithmetic::float32;
  // Images are some of so many, for which the algorithm is selected; 0 if they are all.
  std::int64_t of_samples = 0;
};

// Whether each channel of x has a filter of its own, and there are several.
inline bool is_depthwise(const Problem& problem) {
  const std::int64_t groups = problem.window.groups;
  return groups > 1 && problem.W.shape(0) == groups && problem.W.shape(1) == 1;
}
// Whether images have two axes of pixels and are of float32 or bfloat16.
inline bool has_common_images(const Problem& problem) {
  const Dtype dtype = problem.x.dtype();
  return problem.x.ndim() == 4 && (dtype == Dtype::float32 || dtype == Dtype::bfloat16);
}

// What is done to a result beside the convolution.
struct Epilogue {
  Array bias = {};           // a number for each channel, of any float dtype; or undefined
  bool accumulates = false;  // whether the result is added to what is there
  PartPass pass = {};        // what each part of an image goes through, if anything
};

// A row of a device's array of algorithms.
struct Algorithm {
  const char* name;
  bool (*supports)(const Problem& problem);
  // The time of a problem that it supports, compared with that of other algorithms.
  double (*cost)(const Problem& problem) = nullptr;
  void (*run)(const Problem& problem, const Epilogue& epilogue);
  // Whether it adds the epilogue's bias, which is dense and of W's dtype, to an image, whether it
  // calls the epilogue's pass for parts of an image, and whether it adds a weight gradient to what
  // is in the result. What it does not do is left to the caller.
  bool adds_bias = false, has_parts = false, adds_weight_grad = false;
};

// Calls run(wide) with the problem in float32, and casts the result.
template <class Run>
void in_float32(const Problem& problem, const Run& run) {
  const Array& result = problem.result();
  const Array a = cast(problem.first(), Dtype::float32), b = cast(problem.second(), Dtype::float32);
  const bool is_wide = result.dtype() == Dtype::float32;
  const Array wide = is_wide ? result : empty_like(result, Dtype::float32);
  run(problem.of(a, b, wide));
  if (!is_wide) copy(wide, result);
}

// Runs a problem on the kernels of its device.
void compute(const Problem& problem, const Epilogue& epilogue);

}  // namespace renga::convolution
