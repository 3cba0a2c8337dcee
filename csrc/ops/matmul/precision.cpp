#include "ops/matmul/precision.h"

#include "ops/shape/manipulation.h"

namespace renga {

Variable as_activation(const Variable& x, const char* caller) {
  if (x.dtype(caller) != Dtype::float32 || !bfloat16_activations()) return x;
  return cast(x, Dtype::bfloat16);
}

}  // namespace renga
