// Convolution by Winograd's algorithm: of 3x3 filters at stride 1 with a quarter of the
// multiplications, of 4x4 filters at stride 2 with four tenths, and little more rounding error than
// a direct sum has.
#pragma once

#include "ops/convolution/packed_weight_cache.h"
#include "ops/matmul/precision.h"
#include "ops/shape/window.h"
#include "tensor/array.h"

namespace renga {

// Whether the kernels below know a convolution: 3x3 taps at stride 1 or 4x4 at stride 2, without
// dilation and groups, pads of at most 2, and channels in whole panels of 32.
bool winograd_convolves(const Shape& W, const Window& window);

// Outputs come in tiles of `rows` by `columns`, for each of which a pair of channels takes `points`
// multiplications.
struct WinogradScheme {
  std::int64_t rows, columns, points;
};
WinogradScheme winograd_scheme(const Shape& x, const Window& window, Factors factors);

// As ConvolutionKernels; images of float32 or bfloat16, W and gW of float32 and gW row-major, none
// of them empty. b may be of any float dtype, or undefined, forms nullptr. Factors of bfloat16 need
// simd::has_bfloat16_dot_product. Fastest where images are channels last. Results do not depend on
// the number of threads.
void winograd_forward(const Array& x, const Array& W, const Array& y, const Window& window,
                      Factors factors, const Array& b, FilterForms* forms);
void winograd_input_grad(const Array& gy, const Array& W, const Array& gx, const Window& window,
                         Factors factors, const Array& b, FilterForms* forms);
void winograd_weight_grad(const Array& gy, const Array& x, const Array& gW, const Window& window,
                          Factors factors);

}  // namespace renga
