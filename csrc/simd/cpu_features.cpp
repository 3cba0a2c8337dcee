#include "simd/cpu_features.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <dnnl.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace renga::simd {

#if defined(__x86_64__)
namespace {

// The largest instruction set that RENGA_MAX_CPU_ISA allows.
dnnl::cpu_isa environment_limit() {
  const char* const name = std::getenv("RENGA_MAX_CPU_ISA");
  if (name == nullptr) return dnnl::cpu_isa::avx512_core_amx;
  const std::array<std::pair<std::string_view, dnnl::cpu_isa>, 4> known{
      {{"AVX2", dnnl::cpu_isa::avx2},
       {"AVX512_CORE", dnnl::cpu_isa::avx512_core},
       {"AVX512_CORE_BF16", dnnl::cpu_isa::avx512_core_bf16},
       {"AVX512_CORE_AMX", dnnl::cpu_isa::avx512_core_amx}}};
  for (const auto& [text, isa] : known) {
    if (text == name) return isa;
  }
  throw std::invalid_argument(
      "RENGA_MAX_CPU_ISA: expected AVX2, AVX512_CORE, AVX512_CORE_BF16 or AVX512_CORE_AMX, got " +
      std::string(name));
}

// Whether the CPU has these instructions and neither variable excludes them.
bool may_use(dnnl::cpu_isa isa) {
  const auto all = static_cast<unsigned>(isa);
  const auto usable = static_cast<unsigned>(dnnl::get_effective_cpu_isa());
  return (usable & static_cast<unsigned>(environment_limit()) & all) == all;
}

// Linux saves the tiles of processes that have asked for it only.
bool tiles_are_permitted() {
  constexpr int kRequestPermission = 0x1023, kTileData = 18;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

}  // namespace

bool has_avx512() {
  static const bool has = may_use(dnnl::cpu_isa::avx512_core);
  return has;
}

bool has_bfloat16_dot_product() {
  static const bool has = may_use(dnnl::cpu_isa::avx512_core_bf16);
  return has;
}

bool has_fast_bfloat16_dot_product() {
  static const bool is_fast = has_bfloat16_dot_product() && !__builtin_cpu_is("intel");
  return is_fast;
}

bool has_amx() {
  static const bool has = may_use(dnnl::cpu_isa::avx512_core_amx) && tiles_are_permitted();
  return has;
}

#else  // none of these on other processors

bool has_avx512() { return false; }
bool has_bfloat16_dot_product() { return false; }
bool has_fast_bfloat16_dot_product() { return false; }
bool has_amx() { return false; }

#endif

}  // namespace renga::simd
