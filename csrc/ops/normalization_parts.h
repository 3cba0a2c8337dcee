// The parts of batch normalization, for batches that are spread over ranks: between them somebody
// merges what each rank has found.
#pragma once

#include <tuple>

#include "ops/list.h"

namespace renga {

// Vectors are over the elements that x has along the axes not in `axes`, in float64 where x is,
// else in float32. No history is kept.

// The mean and the mean squared difference from it; zeros for an empty batch.
std::tuple<Array, Array> channel_moments(const Array& x, const Axes& axes);
// (x - mean) scale + beta
Array channel_normalize(const Array& x, const Array& mean, const Array& scale, const Array& beta,
                        const Axes& axes);
// Sums over each channel of gy and of gy (x - mean).
std::tuple<Array, Array> channel_gradient_sums(const Array& x, const Array& gy, const Array& mean,
                                               const Axes& axes);
// (gy - shift) scale - (x - mean) slope
Array channel_input_grad(const Array& x, const Array& gy, const Array& mean, const Array& scale,
                         const Array& shift, const Array& slope, const Axes& axes);

template <class Visit>
void list_normalization_parts_ops(Visit&& visit) {
  const Arg x{"x"}, gy{"gy"}, mean{"mean"}, scale{"scale"}, axes{"axes"};
  visit(Op{"channel_moments", "(N, C, ...) -> (C,), (C,)", "Mean and variance over axes."},
        &channel_moments, x, axes);
  visit(Op{"channel_normalize", "(N, C, ...), (C,), (C,), (C,) -> (N, C, ...)",
           "(x - mean) scale + beta."},
        &channel_normalize, x, mean, scale, Arg{"beta"}, axes);
  visit(Op{"channel_gradient_sums", "(N, C, ...), (N, C, ...), (C,) -> (C,), (C,)",
           "Sums over axes of gy and of gy (x - mean)."},
        &channel_gradient_sums, x, gy, mean, axes);
  visit(Op{"channel_input_grad", "(N, C, ...), (N, C, ...), (C,), (C,), (C,), (C,) -> (N, C, ...)",
           "(gy - shift) scale - (x - mean) slope."},
        &channel_input_grad, x, gy, mean, scale, Arg{"shift"}, Arg{"slope"}, axes);
}

}  // namespace renga
