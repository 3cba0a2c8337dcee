#include "devices/parallel.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

namespace renga {
namespace {

TEST_CASE("short work stays on the thread that calls for it, long work is shared out") {
  const int before = omp_get_max_threads();
  omp_set_num_threads(2);
  const auto threads_for = [](std::int64_t n, std::int64_t cost) {
    std::vector<int> by(static_cast<std::size_t>(n), -1);
    parallel_for(n, cost, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        CHECK(by[static_cast<std::size_t>(i)] == -1);
        by[static_cast<std::size_t>(i)] = omp_get_thread_num();
      }
    });
    CHECK(std::find(by.begin(), by.end(), -1) == by.end());
    return 1 + *std::max_element(by.begin(), by.end());
  };
  CHECK(threads_for(1, kParallelWorth) == 1);
  CHECK(threads_for(100, (kParallelWorth - 1) / 100) == 1);
  CHECK(threads_for(1000, kParallelWorth / 1000 + 1) == 2);
  omp_set_num_threads(before);
}

}  // namespace
}  // namespace renga
