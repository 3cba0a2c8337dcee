#include "ops/matmul/cpu/bf16x3.h"

#include <atomic>

#include "ops/elementwise/elementwise.h"
#include "simd/cpu_features.h"

namespace renga {
namespace {

enum class Choice { machine, yes, no };
std::atomic<Choice> choice{Choice::machine};

}  // namespace

bool three_products_pay() {
  if (!simd::has_avx512()) return false;
  if (choice == Choice::machine) return simd::has_amx();
  return choice == Choice::yes;
}

void let_three_products_pay(std::optional<bool> pay) {
  choice = !pay ? Choice::machine : *pay ? Choice::yes : Choice::no;
}

BfloatParts::BfloatParts(const Array& x) : high(cast(x, Dtype::bfloat16)) {
  low = cast(apply("bfloat_parts", Binary::subtract, x, high), Dtype::bfloat16);
}

}  // namespace renga
