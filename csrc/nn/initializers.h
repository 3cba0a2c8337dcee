// Initializers: functions that fill an array with its first values. They draw from numpy_random()
// what Python's initializers of the same names draw.
#pragma once

#include <functional>

#include "tensor/array.h"

namespace renga {

// Fills an array of any strides, float dtype and device.
using Initializer = std::function<void(const Array&)>;

namespace initializers {

Initializer constant(double value);
// `scale` times the identity, for square matrices.
Initializer identity(double scale = 1);
// Normal numbers with this standard deviation, and even ones from -scale to scale.
Initializer normal(double scale = 0.05);
Initializer uniform(double scale = 0.05);

// The initializers below draw with `scale` times a size that follows from the inputs per output of
// a weight (outputs, inputs, kernel...), its fan_in, and its outputs per input: LeCun et al., 1998;
// Glorot and Bengio, 2010; He et al., 2015.
Initializer lecun_normal(double scale = 1);    // √(1 / fan_in)
Initializer lecun_uniform(double scale = 1);   // √(3 / fan_in)
Initializer glorot_normal(double scale = 1);   // √(2 / (fan_in + fan_out))
Initializer glorot_uniform(double scale = 1);  // √(6 / (fan_in + fan_out))
// √(2 / fan): fan_in keeps the size of activations, fan_out that of gradients.
enum class Fan { in, out };
Initializer he_normal(double scale = 1, Fan fan = Fan::in);
Initializer he_uniform(double scale = 1);  // √(6 / fan_in)
// `scale` times a matrix (outputs, inputs kernel...) whose rows are orthonormal, or whose columns
// are where there are more outputs (Saxe et al., 2014). Python's, but for the rounding of its QR.
Initializer orthogonal(double scale = 1.1);

}  // namespace initializers
}  // namespace renga
