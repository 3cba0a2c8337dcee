// How exactly products are computed: settings of the program, which every thread can override.
#pragma once

#include <cstdint>
#include <optional>

#include "autograd/variable.h"

namespace renga {

// Of products of float32 arrays, by the names of config.compute_precision: IEEE float32; each as
// three products of bfloat16 numbers; as one. Sums are float32's in any case.
enum class Precision : std::uint8_t { highest, high, medium };

// What a kernel multiplies: float32 numbers, or these rounded to bfloat16. It adds up in float32.
enum class Factors : std::uint8_t { float32, bfloat16 };

// This thread's choice, else the process's default (highest).
Precision compute_precision();
void set_compute_precision(std::optional<Precision> precision);
void set_default_compute_precision(Precision precision);

// Whether activations are bfloat16 (config.dtype is mixed_bfloat16): then products round a float32
// activation and hand on bfloat16. Weights and their gradients are float32 all the time.
bool bfloat16_activations();
void set_bfloat16_activations(std::optional<bool> on);
void set_default_bfloat16_activations(bool on);

// x as a product takes it.
Variable as_activation(const Variable& x);

}  // namespace renga
