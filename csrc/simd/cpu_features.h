// Instruction sets that renga's kernels may use.
//
// ONEDNN_MAX_CPU_ISA limits oneDNN and renga; RENGA_MAX_CPU_ISA, which takes the same names, limits
// renga alone.
#pragma once

namespace renga::simd {

// AVX-512 with its F, VL, DQ and BW parts.
bool has_avx512();
// Dot products of bfloat16 numbers that are summed in float32 (AVX512_BF16).
bool has_bfloat16_dot_product();
// Whether these take less time than as many products of floats: twice the time on a Sapphire Rapids
// core, half of it on a Zen 5 core.
bool has_fast_bfloat16_dot_product();
// Whether there are such dot products on tiles, at many times the speed of all other instructions.
bool has_amx();

}  // namespace renga::simd
