// Layer and RMS normalization: of each row, where a row is what the last axes hold.
#pragma once

#include "devices/kernel_table.h"
#include "ops/list.h"

namespace renga {

// y = (x - mean) / sqrt(mean of (x - mean)² + eps) gamma + beta for each row of x (rows, columns),
// row-major. Vectors and statistics are float64 if x is, else float32. Without beta, the mean is
// taken to be 0.
struct RowNormalization {
  Array x, gamma, beta;
  double eps;
};

struct RowNormalizationKernels {
  // `normalize` also writes the means and the inverse deviations of the rows for the backward pass.
  void (*normalize)(const RowNormalization& normalization, const Array& y, const Array& mean,
                    const Array& inv_std);
  void (*gradients)(const RowNormalization& normalization, const Array& mean, const Array& inv_std,
                    const Array& gy, const Array& gx, const Array& ggamma, const Array& gbeta);
  // These run on the host: y = x / (|x| + eps) for each row, whose lengths |x| are written, too;
  // and gx of gy.
  void (*unit_rows)(const Array& x, double eps, const Array& y, const Array& lengths);
  void (*unit_rows_grad)(const Array& x, double eps, const Array& lengths, const Array& gy,
                         const Array& gx);
};
extern KernelTable<RowNormalizationKernels> row_normalization_kernels;

// gamma and beta have the shape of x's last axes.
Variable layer_normalization(const Variable& x, const Variable& gamma, const Variable& beta,
                             double eps = 1e-5);
// x / sqrt(mean of x² + eps) gamma
Variable rms_normalization(const Variable& x, const Variable& gamma, double eps = 1e-6);

template <class Visit>
void list_row_normalization_ops(Visit&& visit) {
  constexpr Traits of_rows{.locality = Locality::batchwise, .inputs = 1, .flops = {.per_input = 7}};
  constexpr Traits rms{.locality = Locality::batchwise, .inputs = 1, .flops = {.per_input = 4}};
  visit(Op{"layer_normalization", "(N, ..., C), (C), (C) -> (N, ..., C)",
           "Mean 0 and variance 1 over the last axes, times gamma, plus beta (Ba et al., 2016).",
           of_rows},
        &layer_normalization, Arg{"x"}, Arg{"gamma"}, Arg{"beta"}, Default{"eps", 1e-5});
  visit(Op{"rms_normalization", "(N, ..., C), (C) -> (N, ..., C)",
           "Mean square 1 over the last axes, times gamma (Zhang and Sennrich, 2019).", rms,
           "RMSNormalization"},
        &rms_normalization, Arg{"x"}, Arg{"gamma"}, Default{"eps", 1e-6});
}

}  // namespace renga
