// Random operations. All draw from Philox 4x32-10 (Salmon et al., "Parallel random numbers: as easy
// as 1, 2, 3", SC'11): the number at a position depends on the seed and the position alone.
#pragma once

#include "devices/kernel_table.h"
#include "lazy/fusion.h"
#include "ops/list.h"

namespace renga {

// Which elements a dropout keeps, and what it multiplies them by. Each place in the memory of a
// dense array has a bit in the mask, 64 of them an int64; one more of these stands behind the last.
struct Drop {
  Array mask;
  double scale;
};

struct NoiseKernels {
  // A bit is set where the place's uniform number is at least `ratio`.
  void (*draw)(double ratio, std::uint64_t seed, const Array& mask);
  // y = x scale where the element is kept, else 0. y is dense in memory.
  void (*drop)(const Array& x, const Drop& drop, const Array& y);
  // Standard normal numbers; y is row-major.
  void (*normal)(std::uint64_t seed, const Array& y);
};
extern KernelTable<NoiseKernels> noise_kernels;

// The dropout of a deferred x, recorded as operation `name`.
extern FusionRegistry<Variable(const char* name, const Variable& x, const Drop&)> dropout_fusions;

Variable dropout(const Variable& x, double ratio, std::uint64_t seed);
// x with elements dropped, in an array whose axes lie in memory in the given order.
Variable dropped(const Variable& x, const Drop& drop, const Axes& order);
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
