// In which precision products are computed: settings of the process, which a thread can override.
#pragma once

#include <cstdint>
#include <optional>

#include "autograd/variable.h"

namespace renga {

// Of products of float32 arrays, as config.compute_precision names it: IEEE float32; bf16x3, three
// bfloat16 products each; one bfloat16 product. Sums are in float32 in any case.
enum class Precision : std::uint8_t { highest, high, medium };

// The type of a kernel's operands: float32, or rounded to bfloat16. Sums are in float32.
enum class ComputeType : std::uint8_t { float32, bfloat16 };

// This thread's setting, else the process's default (highest).
Precision compute_precision();
void set_compute_precision(std::optional<Precision> precision);
void set_default_compute_precision(Precision precision);

// Whether activations are bfloat16 (config.dtype is mixed_bfloat16): products round float32
// activations and return bfloat16. Weights and their gradients are always float32.
bool bfloat16_activations();
void set_bfloat16_activations(std::optional<bool> on);
void set_default_bfloat16_activations(bool on);

// x, cast to bfloat16 if activations are.
Variable as_activation(const Variable& x);

}  // namespace renga
