#include "ops/matmul/precision.h"

#include <atomic>

#include "ops/shape/manipulation.h"

namespace renga {
namespace {

std::atomic<Precision> default_precision{Precision::highest};
std::atomic<bool> default_activations{false};
thread_local std::optional<Precision> thread_precision;
thread_local std::optional<bool> thread_activations;

}  // namespace

Precision compute_precision() {
  return thread_precision ? *thread_precision : default_precision.load(std::memory_order_relaxed);
}
void set_compute_precision(std::optional<Precision> precision) { thread_precision = precision; }
void set_default_compute_precision(Precision precision) { default_precision = precision; }

bool bfloat16_activations() {
  return thread_activations ? *thread_activations
                            : default_activations.load(std::memory_order_relaxed);
}
void set_bfloat16_activations(std::optional<bool> on) { thread_activations = on; }
void set_default_bfloat16_activations(bool on) { default_activations = on; }

Variable as_activation(const Variable& x) {
  if (x.dtype() != Dtype::float32 || !bfloat16_activations()) return x;
  return cast(x, Dtype::bfloat16);
}

}  // namespace renga
