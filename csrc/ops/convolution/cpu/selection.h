// Which of the CPU's algorithms computes a pass of a convolution. The selections can be shown,
// saved and loaded (renga.kernels).
#pragma once

#include <map>
#include <string>

#include "ops/convolution/problem.h"

namespace renga {

namespace convolution {

// The algorithms. Each has its own file, which ends with what is named here. Their costs are
// compared by the first call with a problem; of equally cheap ones, the first is selected.
#define RENGA_CONVOLUTION_ALGORITHMS(row)                                                       \
  row(kBf16x3) row(kDepthwise) row(kGrouped) row(kTiles) row(kTaps) row(kDirect) row(kWinograd) \
      row(kGemm) row(kDilated) row(kIm2col)

#define RENGA_DECLARED(name) extern const Algorithm name;
RENGA_CONVOLUTION_ALGORITHMS(RENGA_DECLARED)
#undef RENGA_DECLARED

// The fastest arithmetic that the precision of products allows.
Arithmetic arithmetic_of(const Problem& problem);

// Selects by shapes, never by a clock: a program computes the same numbers in every run and on
// every rank. The result is nullptr where no algorithm supports the problem's dtype.
const Algorithm* select(const Problem& problem);

}  // namespace convolution

// Names of algorithms by problem: a pass of a convolution with its shapes and options, in words.
using AlgorithmCache = std::map<std::string, std::string>;

AlgorithmCache algorithm_cache();
// Loaded algorithms take precedence over the cheapest ones, where they support the problem.
void load_algorithms(const AlgorithmCache& loaded);
void clear_algorithms();

// Makes all convolutions that can run on one algorithm, whatever was loaded; "auto", the default,
// ends that. Throws std::invalid_argument for other names.
void use_convolution_algorithm(const std::string& name);

// Called for every new selection, on the thread of the operation.
extern void (*algorithm_observer)(const std::string& problem, const std::string& algorithm);

}  // namespace renga
