// What the optimizers' tests know of float dtypes.
#pragma once

#include <vector>

#include "tensor/array.h"

namespace renga {

inline constexpr Dtype kFloats[] = {Dtype::float16, Dtype::bfloat16, Dtype::float32,
                                    Dtype::float64};

inline std::vector<double> values(const Array& x) {
  const Array y = contiguous(cast(x, Dtype::float64));
  return {y.as<double>(), y.as<double>() + y.size()};
}

// How far a step of a rule may be from the exact one, on numbers near 1.
inline double tolerance(Dtype dtype) {
  switch (dtype) {
    case Dtype::float16:
      return 2e-3;
    case Dtype::bfloat16:
      return 2e-2;
    case Dtype::float32:
      return 1e-6;
    default:
      return 1e-14;
  }
}

}  // namespace renga
