// Random operations. All draw from Philox 4x32-10 (Salmon et al., "Parallel random numbers: as easy
// as 1, 2, 3", SC'11): the number at a position depends on the seed and the position alone.
#pragma once

#include "devices/kernel_table.h"
#include "lazy/fusion.h"
#include "ops/list.h"

namespace renga {

// Which elements a dropout keeps, and the factor that scales them. The mask has a bit for each
// element of a dense array, in memory order: 64 in an int64, and one more int64 at the end, so that
// kernels may read past the last bit.
struct DropoutMask {
  Array bits;
  double scale;
};

struct RandomKernels {
  // Sets the bits of elements whose uniform number is at least `ratio`, clears the others.
  void (*dropout_mask)(double ratio, std::uint64_t seed, const Array& bits);
  // y = x scale where the element is kept, else 0. y is dense in memory.
  void (*dropout)(const Array& x, const DropoutMask& mask, const Array& y);
  // Standard normal numbers; y is row-major.
  void (*normal)(std::uint64_t seed, const Array& y);
  // Numbers between 0 and 1; y is row-major.
  void (*uniform)(std::uint64_t seed, const Array& y);
};
extern KernelTable<RandomKernels> random_kernels;

// The dropout of a deferred x, recorded as operation `name`.
extern FusionRegistry<Variable(const char* name, const Variable& x, const DropoutMask&)>
    dropout_fusions;

Variable dropout(const Variable& x, double ratio, std::uint64_t seed);
// The dropout with a given mask, in an array whose axes lie in memory in `order`.
Variable apply_dropout(const Variable& x, const DropoutMask& mask, const Axes& order);
Variable gaussian(const Variable& mean, const Variable& ln_var, std::uint64_t seed);
// x and uniform noise from low to high.
Variable uniform(const Variable& x, double low, double high, std::uint64_t seed);
// x and Gumbel noise.
Variable gumbel(const Variable& x, std::uint64_t seed);

template <class Visit>
void list_random_ops(Visit&& visit) {
  visit(Op{"dropout", "(...) -> (...)",
           "Elements set to 0 with probability ratio, others scaled up.", pointwise(1)},
        &dropout, Arg{"x"}, Arg{"ratio"}, Arg{"seed"});
  visit(Op{"gaussian", "(...), (...) -> (...)", "Normal numbers of a mean and a log variance.",
           pointwise(4)},
        &gaussian, Arg{"mean"}, Arg{"ln_var"}, Arg{"seed"});
  visit(Op{"uniform", "(...) -> (...)", "x and uniform noise from low to high.", pointwise(1)},
        &uniform, Arg{"x"}, Arg{"low"}, Arg{"high"}, Arg{"seed"});
  visit(Op{"gumbel", "(...) -> (...)", "x and Gumbel noise.", pointwise(1)}, &gumbel, Arg{"x"},
        Arg{"seed"});
}

}  // namespace renga
