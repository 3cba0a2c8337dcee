// Attention: averages of values, weighted by how well their keys match a query.
#pragma once

#include <array>
#include <optional>

#include "devices/kernel_table.h"
#include "ops/list.h"

namespace renga {

// softmax(scale q k^T + mask) v for each sample and head; with `dropout` above 0, after the dropout
// of the softmax. q is (N, H, L, E), k (N, H, S, E) and v (N, H, S, V).
struct Attention {
  Array q, k, v;
  Array
      mask;  // broadcast to (N, H, L, S): bool (whether a key is read) or float32; may be undefined
  double scale = 1;
  bool is_causal = false;  // query i reads keys 0 to i
  double dropout = 0;
  std::uint64_t seed = 0;
};

// Arrays are float32, float16 or bfloat16, all of one dtype, contiguous along the last axis.
struct AttentionKernels {
  // y (N, H, L, V), and for the backward pass the logarithms of the softmax's denominators,
  // (N, H, L) in float32. A query that reads no key gets 0, and -inf.
  void (*forward)(const Attention& attention, const Array& y, const Array& log_sums);
  void (*backward)(const Attention& attention, const Array& y, const Array& log_sums,
                   const Array& gy, const Array& gq, const Array& gk, const Array& gv);
};
extern KernelTable<AttentionKernels> attention_kernels;

// The attention to some of the keys, for keys that come in blocks: the results of two blocks, and
// the logarithms of their softmax's denominators, give those of both.
struct AttentionBlock {
  Array y;         // (N, H, L, V)
  Array log_sums;  // (N, H, L) in float32, or float64 if y is; -inf for queries that read no key
};
AttentionBlock attend_to_block(const Attention& attention);

// Returns what a block of keys contributes to the gradients of q, k and v, from the result of all
// blocks.
std::array<Array, 3> attention_block_gradients(const Attention& attention,
                                               const AttentionBlock& result, const Array& gy);

// `scale` is 1 / sqrt(E) by default. A mask of floats is added to the scores.
Variable scaled_dot_product_attention(const Variable& query, const Variable& key,
                                      const Variable& value,
                                      const std::optional<Variable>& attn_mask = {},
                                      double dropout_p = 0, bool is_causal = false,
                                      std::optional<double> scale = {}, std::uint64_t seed = 0);

template <class Visit>
void list_attention_ops(Visit&& visit) {
  constexpr Traits of_heads{
      .locality = Locality::planewise, .inputs = 3, .flops = {.products = Products::attention}};
  visit(
      Op{"scaled_dot_product_attention", "(N, H, L, E), (N, H, S, E), (N, H, S, V) -> (N, H, L, V)",
         "softmax(scale q k^T + mask) v, without storing the scores (Dao et al., 2022).", of_heads},
      &scaled_dot_product_attention, Arg{"query"}, Arg{"key"}, Arg{"value"},
      Default<std::optional<Variable>>{"attn_mask", std::nullopt}, Default{"dropout_p", 0.0},
      Default{"is_causal", false}, Default<std::optional<double>>{"scale", std::nullopt},
      Default{"seed", std::uint64_t{0}});
}

}  // namespace renga
