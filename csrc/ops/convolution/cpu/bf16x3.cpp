// float32 products as three of bfloat16 numbers each (ops/matmul/cpu/bfloat16_matmul.h).
#include "ops/convolution/cpu/cost.h"
#include "ops/convolution/cpu/selection.h"
#include "ops/convolution/cpu/tiles/tile_convolution.h"
#include "ops/elementwise/elementwise.h"
#include "ops/matmul/cpu/bfloat16_matmul.h"

namespace renga::convolution {
namespace {

// A problem as it is for each of the three products.
Problem of_bfloat16(Problem problem) {
  problem.arithmetic = tiles_support(problem) ? Arithmetic::tiles : Arithmetic::bfloat16;
  problem.cache = nullptr;
  return problem;
}

bool supports(const Problem& problem) {
  return problem.arithmetic == Arithmetic::bf16x3 && kDirect.supports(of_bfloat16(problem));
}

void run(const Problem& given, const Epilogue&) {
  const Problem problem = of_bfloat16(given);
  const Algorithm& algorithm = problem.arithmetic == Arithmetic::tiles ? kTiles : kDirect;
  const Bfloat16Split a(problem.first()), b(problem.second());
  const Array &result = problem.result(), term = empty_like(result);
  const auto convolve = [&](const Array& left, const Array& right, const Array& to) {
    algorithm.run(problem.of(left, right, to), {});
  };
  const auto add = [&](const Array& left, const Array& right) {
    convolve(left, right, term);
    elementwise_kernels.on(result.device()).binary(Binary::add, 0, result, term, result);
  };
  convolve(a.low, b.high, result);
  add(a.high, b.low);
  add(a.high, b.high);
}

}  // namespace

constinit const Algorithm kBf16x3{"bf16x3", supports, no_cost, run};

}  // namespace renga::convolution
