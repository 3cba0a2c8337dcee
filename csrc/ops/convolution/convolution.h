// Convolution and its gradients with respect to images and weights. Each of the three is linear in
// its operands, and the gradient of the other two.
#pragma once

#include <optional>

#include "devices/kernel_table.h"
#include "ops/list.h"
#include "ops/shape/window.h"

namespace renga {

namespace convolution {
struct Problem;
struct Epilogue;
}  // namespace convolution

// Images have two axes of pixels at least, in any memory order; no array is empty. The epilogue's
// bias has one number per channel of the result.
struct ConvolutionKernels {
  void (*run)(const convolution::Problem& problem, const convolution::Epilogue& epilogue);
  // Whether the image that a forward pass reads is worth a channels-last copy. The function is
  // optional.
  bool (*prefers_channels_last)(const convolution::Problem& problem) = nullptr;
  // Adds a weight gradient to what the result holds, unless that would take no less time than
  // adding it afterwards: then false. The kernel is optional.
  bool (*add_weight_grad)(const convolution::Problem& problem) = nullptr;
  // Whether parts of a result go through the epilogue's pass while they are in the cache.
  bool has_parts = false;
};
extern KernelTable<ConvolutionKernels> convolution_kernels;

// Adds b to every pixel of y, in place. y is channels-last.
void add_bias(const Array& y, const Array& b);
// Does to a whole image what is left to be done beside its convolution.
void finish_image(const Array& y, const convolution::Epilogue& epilogue);

Variable convolution_2d(const Variable& x, const Variable& W, const std::optional<Variable>& b = {},
                        const Window& window = {}, bool cover_all = false);

// The transposed convolution; W is (I, O / groups, kh, kw). Several output extents have a
// convolution with x's extents: `outsize` chooses one, the smallest by default.
Variable deconvolution_2d(const Variable& x, const Variable& W,
                          const std::optional<Variable>& b = {}, const Window& window = {},
                          const std::optional<Dims>& outsize = {});

// These take images with any number of axes.
Variable convolution_nd(const Variable& x, const Variable& W, const std::optional<Variable>& b,
                        const Window& window, bool cover_all = false);
Variable deconvolution_nd(const Variable& x, const Variable& W, const std::optional<Variable>& b,
                          const Window& window, const std::optional<Dims>& outsize = {});

template <class Visit>
void list_convolution_ops(Visit&& visit) {
  const Default<std::optional<Variable>> b{"b", std::nullopt};
  const Default<Window> window{"window", Window{}};
  const Default<std::optional<Dims>> outsize{"outsize", std::nullopt};
  visit(Op{"convolution_2d", "(N, I, H, W), (O, I/groups, kh, kw), (O,) -> (N, O, H', W')",
           "Two-dimensional convolution (cross-correlation).", weighted(Products::per_output),
           "Convolution2DFunction"},
        &convolution_2d, Arg{"x"}, Arg{"W"}, b, window, Default{"cover_all", false});
  visit(Op{"deconvolution_2d", "(N, I, H, W), (I, O/groups, kh, kw), (O,) -> (N, O, H', W')",
           "Transposed two-dimensional convolution.", weighted(Products::per_input),
           "Deconvolution2DFunction"},
        &deconvolution_2d, Arg{"x"}, Arg{"W"}, b, window, outsize);
  visit(Op{"convolution_nd", "(N, I, d1, ...), (O, I/groups, k1, ...), (O,) -> (N, O, d1', ...)",
           "Convolution (cross-correlation) over any number of axes.",
           weighted(Products::per_output)},
        &convolution_nd, Arg{"x"}, Arg{"W"}, Arg{"b"}, Arg{"window"}, Default{"cover_all", false});
  visit(Op{"deconvolution_nd", "(N, I, d1, ...), (I, O/groups, k1, ...), (O,) -> (N, O, d1', ...)",
           "Transposed convolution over any number of axes.", weighted(Products::per_input)},
        &deconvolution_nd, Arg{"x"}, Arg{"W"}, Arg{"b"}, Arg{"window"}, outsize);
}

}  // namespace renga
