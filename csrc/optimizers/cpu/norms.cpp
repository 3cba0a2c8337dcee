#include "optimizers/norms.h"

#include <algorithm>
#include <vector>

#include "devices/gil_release.h"
#include "devices/parallel.h"
#include "simd/blocked_loop.h"
#include "tensor/strided_loop.h"

namespace renga {
namespace {

using simd::kBlock;

// Adds up the squares of n elements, which are `step` bytes apart.
template <class T>
double sum_of_squares(const std::byte* x, std::int64_t step, std::int64_t n) {
  using C = Compute<T>;
  simd::InputBlocks<T> blocks(x, step, n);
  double total = 0;
  for (std::int64_t begin = 0; begin < n; begin += kBlock) {
    const std::int64_t m = std::min(kBlock, n - begin);
    const C* const from = blocks.at(begin, m);
    C block = 0;
#pragma omp simd reduction(+ : block)
    for (std::int64_t i = 0; i < m; ++i) block += from[i] * from[i];
    total += static_cast<double>(block);
  }
  return total;
}

template <class T>
double sum_of_squares(const Array& x) {
  // Parts of fixed lengths, so that the sum does not depend on the number of threads.
  constexpr std::int64_t kPart = 128 * kBlock;
  const auto loop = make_loop<1>({&x});
  const std::int64_t parts = (x.size() + kPart - 1) / kPart;
  std::vector<double> sums(static_cast<std::size_t>(parts));
  parallel_for(parts, kPart, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t part = first; part < last; ++part) {
      const std::int64_t begin = part * kPart, end = std::min(begin + kPart, x.size());
      for_each_run(loop, begin, end, [&](std::int64_t n, const auto& p, const auto& step) {
        sums[static_cast<std::size_t>(part)] += sum_of_squares<T>(p[0], step[0], n);
      });
    }
  });
  double total = 0;
  for (const double sum : sums) total += sum;
  return total;
}

}  // namespace

double squared_norm(const Array& x) {
  require(is_float(x.dtype()) && x.device().is_host(),
          "squared_norm: expected floats of the host, got ", x.dtype(), " on ",
          to_string(x.device()));
  const GilRelease work(x.size());
  double total = 0;
  visit_dtype(x.dtype(), [&]<class T>(Type<T>) {
    if constexpr (is_floating<T>) total = sum_of_squares<T>(x);
  });
  return total;
}

}  // namespace renga
