// Convolution of images and its two gradients, which are each other's gradients.
#pragma once

#include <optional>

#include "devices/kernel_table.h"
#include "ops/convolution/packed_weight_cache.h"
#include "ops/list.h"
#include "ops/shape/window.h"

namespace renga {

// Images are (N, channels, extents...) in any order of memory; W is (O, I / groups, kernel...),
// with as many extents as the images, one or more. In each, x is the larger image (I channels) and
// y the smaller one (O channels), or their gradients. All are of one dtype, but W and gW are
// float32 where images are bfloat16. b, one number for each channel of the result, is added to its
// pixels where it is defined. Where there are `forms`, kernels keep what they make of W there.
struct ConvolutionKernels {
  void (*forward)(const Array& x, const Array& W, const Array& y, const Window& window,
                  const Array& b, FilterForms* forms);
  void (*input_grad)(const Array& gy, const Array& W, const Array& gx, const Window& window,
                     const Array& b, FilterForms* forms);
  void (*weight_grad)(const Array& gy, const Array& x, const Array& gW, const Window& window);
};
extern KernelTable<ConvolutionKernels> convolution_kernels;

// An image of so many channels and extents for the samples of `like`, of its dtype, channels last
// in memory: the kernels are fastest there, and so is what follows.
Array empty_image(std::int64_t channels, const Dims& extents, const Array& like);

// Adds b to every pixel of y, whose channels are last in memory, in place.
void add_bias(const Array& y, const Array& b);

Variable convolution_2d(const Variable& x, const Variable& W, const std::optional<Variable>& b = {},
                        const Window& window = {}, bool cover_all = false);

// The transposed convolution; W is (I, O / groups, kh, kw). `outsize` chooses among the extents
// whose convolution has x's extents; the smallest by default.
Variable deconvolution_2d(const Variable& x, const Variable& W,
                          const std::optional<Variable>& b = {}, const Window& window = {},
                          const std::optional<Dims>& outsize = {});

// The same for images of any number of axes.
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
           "Two-dimensional convolution (cross-correlation)."},
        &convolution_2d, Arg{"x"}, Arg{"W"}, b, window, Default{"cover_all", false});
  visit(Op{"deconvolution_2d", "(N, I, H, W), (I, O/groups, kh, kw), (O,) -> (N, O, H', W')",
           "Transposed two-dimensional convolution."},
        &deconvolution_2d, Arg{"x"}, Arg{"W"}, b, window, outsize);
  visit(Op{"convolution_nd", "(N, I, d1, ...), (O, I/groups, k1, ...), (O,) -> (N, O, d1', ...)",
           "Convolution (cross-correlation) over any number of axes."},
        &convolution_nd, Arg{"x"}, Arg{"W"}, Arg{"b"}, Arg{"window"}, Default{"cover_all", false});
  visit(Op{"deconvolution_nd", "(N, I, d1, ...), (I, O/groups, k1, ...), (O,) -> (N, O, d1', ...)",
           "Transposed convolution over any number of axes."},
        &deconvolution_nd, Arg{"x"}, Arg{"W"}, Arg{"b"}, Arg{"window"}, outsize);
}

}  // namespace renga
