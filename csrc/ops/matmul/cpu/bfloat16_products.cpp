#include "ops/matmul/cpu/bfloat16_products.h"

#include <atomic>

#include "ops/elementwise/elementwise.h"
#include "simd/cpu_features.h"

namespace renga {
namespace {

enum class Setting { by_machine, on, off };
std::atomic<Setting> bf16x3{Setting::by_machine}, bfloat16_products{Setting::by_machine};

bool is_on(Setting setting, bool by_machine) {
  return setting == Setting::by_machine ? by_machine : setting == Setting::on;
}

Setting setting_of(std::optional<bool> on) {
  return !on ? Setting::by_machine : *on ? Setting::on : Setting::off;
}

}  // namespace

bool bf16x3_is_faster() {
  const bool can = simd::has_tiles() || simd::has_avx512();
  return can && is_on(bf16x3, simd::has_tiles());
}

bool dot_products_are_faster() {
  return simd::has_bfloat16_dot_product() &&
         is_on(bfloat16_products, simd::has_fast_bfloat16_dot_product());
}

bool bfloat16_is_faster() {
  return simd::has_tiles() ? is_on(bfloat16_products, true) : dot_products_are_faster();
}

void override_bf16x3(std::optional<bool> faster) { bf16x3 = setting_of(faster); }

void override_bfloat16(std::optional<bool> faster) { bfloat16_products = setting_of(faster); }

Bfloat16Split::Bfloat16Split(const Array& x) : high(cast(x, Dtype::bfloat16)) {
  low = cast(apply("bf16x3", Binary::subtract, x, high), Dtype::bfloat16);
}

}  // namespace renga
