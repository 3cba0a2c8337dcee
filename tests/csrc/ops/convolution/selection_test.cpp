#include "ops/convolution/cpu/selection.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <string>

namespace renga {
namespace {

using convolution::Pass;

// The algorithm for images of one channel and so many columns.
std::string selected(std::int64_t columns) {
  const Window window;
  const Array x = empty({1, 1, 1, columns}, Dtype::float32), W = empty({1, 1, 1, 1}, x.dtype());
  return convolution::select({Pass::forward, x, W, x, window})->name;
}

TEST_CASE("selected algorithms: ever new problems do not fill the memory, and loaded ones stay") {
  const AlgorithmCache before = algorithm_cache();
  clear_algorithms();
  const std::string cheapest = selected(7), other = cheapest == "direct" ? "gemm" : "direct";
  const std::string problem = algorithm_cache().begin()->first;
  load_algorithms({{problem, other}});
  std::size_t most = 0;
  for (std::int64_t columns = 1; columns <= 10000; ++columns) {
    const std::string first = selected(columns);
    CHECK((columns != 7 || first == other));
    CHECK(selected(columns) == first);
    if (columns % 1000 == 0) most = std::max(most, algorithm_cache().size());
  }
  CHECK(most < 5000);
  CHECK(algorithm_cache().at(problem) == other);
  clear_algorithms();
  CHECK(selected(7) == cheapest);
  load_algorithms(before);
}

TEST_CASE("selected algorithms: all that a problem consists of tells it from others") {
  const AlgorithmCache before = algorithm_cache();
  const Array x = empty({2, 4, 9, 9}, Dtype::float32), y = empty({2, 4, 5, 5}, x.dtype());
  const Array W = empty({4, 4, 3, 3}, x.dtype()), grouped = empty({4, 1, 3, 3}, x.dtype());
  const Window window{.stride = {2, 2}, .pad = {1, 1}};
  const Window dilated{.stride = {2, 2}, .pad = {2, 2}, .dilate = {2, 2}};
  const Window groups{.stride = {2, 2}, .pad = {1, 1}, .groups = 4};
  clear_algorithms();
  std::size_t problems = 0;
  for (Pass pass : {Pass::forward, Pass::input_grad, Pass::weight_grad}) {
    for (const convolution::Problem& problem :
         {convolution::Problem{pass, x, W, y, window}, convolution::Problem{pass, x, W, y, dilated},
          convolution::Problem{pass, x, grouped, y, groups},
          convolution::Problem{pass, x, W, y, window, nullptr,
                               convolution::Arithmetic::bfloat16}}) {
      convolution::select(problem);
      CHECK(algorithm_cache().size() == ++problems);
      convolution::select(problem);
      CHECK(algorithm_cache().size() == problems);
    }
  }
  clear_algorithms();
  load_algorithms(before);
}

}  // namespace
}  // namespace renga
