// Operands of reductions whose results depend on the order of the operands, and these results.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "collectives/reduce.h"
#include "tensor/array.h"

namespace renga {

// The operand of a rank: float32 numbers of very different sizes.
inline Array operand(int rank, std::int64_t n) {
  Array x = empty({n}, Dtype::float32);
  auto* data = reinterpret_cast<float*>(x.data());
  for (std::int64_t i = 0; i < n; ++i) {
    data[i] =
        static_cast<float>(std::sin(static_cast<double>(i + 17 * rank)) * std::pow(3.0, rank % 5));
  }
  return x;
}

// The reduction of all ranks' operands in the order of reduce.h.
inline Array expected(int ranks, std::int64_t n, ReduceOp reduction) {
  std::vector<Array> xs;
  std::vector<const std::byte*> pointers;
  for (int r = 0; r < ranks; ++r) pointers.push_back(xs.emplace_back(operand(r, n)).data());
  Array y = empty({n}, Dtype::float32);
  reduce(reduction, Dtype::float32, pointers, y.data(), n);
  return y;
}

}  // namespace renga
