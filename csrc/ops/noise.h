// Random operations. All draw from Philox 4x32-10 (Salmon et al., "Parallel random numbers: as easy
// as 1, 2, 3", SC'11): the number at a position depends on the seed and the position alone.
#pragma once

#include "devices/kernel_table.h"
#include "ops/list.h"

namespace renga {

struct NoiseKernels {
  // y = x scale where a uniform number of the element's place in y's memory is at least `ratio`,
  // else 0. y is dense in memory.
  void (*dropout)(const Array& x, double ratio, double scale, std::uint64_t seed, const Array& y);
  // Standard normal numbers; y is row-major.
  void (*normal)(std::uint64_t seed, const Array& y);
};
extern KernelTable<NoiseKernels> noise_kernels;

Variable dropout(const Variable& x, double ratio, std::uint64_t seed);
Variable gaussian(const Variable& mean, const Variable& ln_var, std::uint64_t seed);

template <class Visit>
void list_noise_ops(Visit&& visit) {
  visit(Op{"dropout", "(...) -> (...)",
           "Elements set to 0 with probability ratio, others scaled up."},
        &dropout, Arg{"x"}, Arg{"ratio"}, Arg{"seed"});
  visit(Op{"gaussian", "(...), (...) -> (...)", "Normal numbers of a mean and a log variance."},
        &gaussian, Arg{"mean"}, Arg{"ln_var"}, Arg{"seed"});
}

}  // namespace renga
