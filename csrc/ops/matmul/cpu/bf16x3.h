// Products of float32 numbers as three products of bfloat16 numbers each, for machines that
// multiply these many times as fast: x = high + low but for about 2^-17 of x, and low times low is
// left out.
#pragma once

#include <optional>

#include "tensor/array.h"

namespace renga {

// Whether they take less time than float32 products: with AMX.
bool three_products_pay();
// For tests: as if they did, or did not, on any machine that has products of bfloat16 numbers;
// nothing leaves it to the machine.
void let_three_products_pay(std::optional<bool> pay);

struct BfloatParts {
  explicit BfloatParts(const Array& x);
  Array high, low;
};

}  // namespace renga
