// Depthwise convolution: each channel has a filter of its own. There are only as many
// multiplications per pixel as kernel offsets, so the time is that of reading and writing each
// pixel once.
#pragma once

#include "ops/convolution/cpu/problem.h"

namespace renga {

// Whether there are as many groups as input and as output channels.
bool depthwise_supports(const Shape& W, const Window& window);

// Images of float32 or bfloat16 with two axes, weights of float32 (gW row-major), none of them
// empty. The bias may be of any float dtype, or undefined; weight gradients ignore it. Products and
// sums are in float32. Results do not depend on the number of threads.
void depthwise_convolve(const Problem& problem, const Array& bias);

}  // namespace renga
