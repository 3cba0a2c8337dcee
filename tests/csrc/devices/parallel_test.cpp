#include "devices/parallel.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <thread>
#include <vector>

namespace renga {
namespace {

TEST_CASE("short work stays on the thread that calls for it, long work is parallelized") {
  const int before = omp_get_max_threads();
  omp_set_num_threads(2);
  const auto threads_for = [](std::int64_t n, std::int64_t cost) {
    const std::thread::id none;
    std::vector<std::thread::id> by(static_cast<std::size_t>(n));
    parallel_for(n, cost, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        CHECK(by[static_cast<std::size_t>(i)] == none);
        by[static_cast<std::size_t>(i)] = std::this_thread::get_id();
      }
    });
    CHECK(std::find(by.begin(), by.end(), none) == by.end());
    return std::set(by.begin(), by.end()).size();
  };
  CHECK(threads_for(1, kParallelWorth) == 1);
  CHECK(threads_for(100, (kParallelWorth - 1) / 100) == 1);
  CHECK(threads_for(1000, kParallelWorth / 1000 + 1) == 2);
  omp_set_num_threads(before);
}

}  // namespace
}  // namespace renga
