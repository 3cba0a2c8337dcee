// Convolution by oneDNN: float32 everywhere, bfloat16 where the CPU can.
#pragma once

#include "ops/convolution/packed_weight_cache.h"
#include "ops/matmul/precision.h"
#include "ops/shape/window.h"
#include "tensor/array.h"

namespace renga {

bool onednn_convolves(Dtype dtype);
// Of rows, columns and one more axis.
inline constexpr int kMostOnednnAxes = 5;

// As ConvolutionKernels; arrays of dtypes that onednn_convolves, none of them empty, those written
// to dense. Fastest where images are channels last.
void onednn_forward(const Array& x, const Array& W, const Array& y, const Window& window,
                    Factors factors, FilterForms* forms);
void onednn_input_grad(const Array& gy, const Array& W, const Array& gx, const Window& window,
                       Factors factors, FilterForms* forms);
// Of a single call; direct_weight_grad.h has what does not depend on threads.
void onednn_weight_grad(const Array& gy, const Array& x, const Array& gW, const Window& window,
                        Factors factors);

}  // namespace renga
