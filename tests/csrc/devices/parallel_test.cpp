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
  while (threads_are_late()) {  // as regions of other tests have found
  }
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

TEST_CASE("short regions are run alone after two that waited for late threads") {
  using std::chrono::microseconds;
  const auto regions_alone = [] {
    int regions = 0;
    while (threads_are_late()) ++regions;
    return regions;
  };
  const microseconds prompt{2}, late{600}, work{10};
  regions_alone();
  for (int i = 0; i < 1000; ++i) note_region(work, prompt);
  note_region(work, late);  // wakes the threads
  CHECK(regions_alone() == 0);
  note_region(work, prompt);
  note_region(work, late);
  CHECK(regions_alone() == 0);
  note_region(work, late);
  const int first = regions_alone();
  CHECK(first > 0);
  for (int i = 0; i < 2; ++i) note_region(work, late);
  CHECK(regions_alone() == 2 * first);
  for (int i = 0; i < 1000; ++i) note_region(work, prompt);
  for (int i = 0; i < 2; ++i) note_region(work, late);
  CHECK(regions_alone() == first);
  for (int i = 0; i < 50; ++i) note_region(microseconds{700}, late);  // as long as the work
  CHECK(regions_alone() == 0);
}

}  // namespace
}  // namespace renga
