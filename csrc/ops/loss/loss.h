// Losses with fused kernels.
#pragma once

#include <optional>

#include "devices/kernel_table.h"
#include "ops/list.h"

namespace renga {

// Losses of bfloat16 scores are float32.
template <class T>
using LossOf = std::conditional_t<std::is_same_v<T, bfloat16>, float, T>;

struct LossKernels {
  // x is (N, C, ...), t is (N, ...) of checked int64 in [0, C) or `ignore`; weight is (C,) or
  // undefined; weight and loss are of type LossOf<x's>. loss = -weight[t] log_softmax(x)[t], 0
  // where ignored. `normalizers` is (2, N, ...), float64 if x is, else float32: log_softmax(x) = (x
  // - normalizers[0]) - normalizers[1].
  void (*nll)(const Array& x, const Array& t, const Array& weight, std::int64_t ignore,
              const Array& normalizers, const Array& loss);
  // gx = gy weight[t] (softmax(x) - onehot(t)), where gy is of the loss's dtype and gx of x's.
  void (*nll_grad)(const Array& x, const Array& normalizers, const Array& t, const Array& weight,
                   std::int64_t ignore, const Array& gy, const Array& gx);
};
extern KernelTable<LossKernels> loss_kernels;

// A loss per sample (and position): -class_weight[t] log softmax(x)[t].
Variable softmax_nll(const Variable& x, const Array& t,
                     const std::optional<Array>& class_weight = {}, std::int64_t ignore_label = -1);
// The sum of these, divided by the number of labels that are not ignored if `normalize`, else by N.
Variable softmax_cross_entropy(const Variable& x, const Array& t, bool normalize = true,
                               const std::optional<Array>& class_weight = {},
                               std::int64_t ignore_label = -1);

// -log sigmoid(x) for each label 1, -log(1 - sigmoid(x)) for each 0, and 0 for each -1.
Variable sigmoid_nll(const Variable& x, const Array& t);
// d² / 2 of the difference d = x - t where |d| < delta, else delta (|d| - delta / 2).
Variable huber(const Variable& x, const Variable& t, double delta);
// -t log p - (1 - t) log(1 - p), where p = sigmoid(x).
Variable bernoulli_nll(const Variable& x, const Variable& t);

template <class Visit>
void list_loss_ops(Visit&& visit) {
  constexpr Traits of_samples{
      .locality = Locality::batchwise, .inputs = 2, .flops = {.per_input = 3}};
  constexpr Traits mean{.flops = {.per_input = 3}};
  visit(Op{"softmax_nll", "(N, C, ...), (N, ...) -> (N, ...)",
           "-class_weight[t] log softmax(x)[t].", of_samples},
        &softmax_nll, Arg{"x"}, Arg{"t"},
        Default<std::optional<Array>>{"class_weight", std::nullopt},
        Default{"ignore_label", std::int64_t{-1}});
  visit(Op{"softmax_cross_entropy", "(N, C, ...), (N, ...) -> ()", "Mean of softmax_nll.", mean},
        &softmax_cross_entropy, Arg{"x"}, Arg{"t"}, Default{"normalize", true},
        Default<std::optional<Array>>{"class_weight", std::nullopt},
        Default{"ignore_label", std::int64_t{-1}});
  visit(Op{"sigmoid_nll", "(...), (...) -> (...)",
           "-log sigmoid(x) for label 1, -log(1 - sigmoid(x)) for 0, and 0 for -1.", pointwise(5),
           "SigmoidCrossEntropy"},
        &sigmoid_nll, Arg{"x"}, Arg{"t"});
  visit(Op{"huber", "(...), (...) -> (...)",
           "d² / 2 of d = x - t where |d| < delta, else delta (|d| - delta / 2).", pointwise(6),
           "Huber"},
        &huber, Arg{"x"}, Arg{"t"}, Arg{"delta"});
  visit(Op{"bernoulli_nll", "(...), (...) -> (...)",
           "-t log p - (1 - t) log(1 - p), where p = sigmoid(x).", pointwise(4), "BernoulliNLL"},
        &bernoulli_nll, Arg{"x"}, Arg{"t"});
}

}  // namespace renga
