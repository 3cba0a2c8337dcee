#include "ops/matmul/cpu/bf16x3.h"

#include <atomic>

#include "ops/elementwise/elementwise.h"
#include "simd/cpu_features.h"

namespace renga {
namespace {

enum class Setting { by_machine, on, off };
std::atomic<Setting> setting{Setting::by_machine};

}  // namespace

bool bf16x3_is_faster() {
  if (!simd::has_avx512()) return false;
  if (setting == Setting::by_machine) return simd::has_amx();
  return setting == Setting::on;
}

void override_bf16x3(std::optional<bool> faster) {
  setting = !faster ? Setting::by_machine : *faster ? Setting::on : Setting::off;
}

Bfloat16Split::Bfloat16Split(const Array& x) : high(cast(x, Dtype::bfloat16)) {
  low = cast(apply("bf16x3", Binary::subtract, x, high), Dtype::bfloat16);
}

}  // namespace renga
