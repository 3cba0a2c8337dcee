// Loops over the host's threads (OpenMP).
#pragma once

#include <omp.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <exception>
#include <mutex>
#ifdef __SANITIZE_THREAD__
#include <thread>
#include <vector>
#endif

#include "devices/late_threads.h"
#include "devices/rounding.h"

namespace renga {

// Elementary operations below which a parallel region costs more than it gains: 10 to 30 us of
// vectorized work. A spinning thread joins after 2 us, but waking one takes 50, and 500 where
// another process has its core.
#ifdef __SANITIZE_THREAD__
inline constexpr std::int64_t kParallelWorth = 1 << 10;  // tests work on small arrays
#else
inline constexpr std::int64_t kParallelWorth = 1 << 17;
#endif
// Elementary operations below which waiting for a late thread takes longer than doing its part.
inline constexpr std::int64_t kWaitWorth = 128 * kParallelWorth;

// Calls task(i) for each i in [0, n), on n threads, or on as many as the system allows.
template <class Task>
void on_threads(int n, const Task& task) {
#ifdef __SANITIZE_THREAD__
  // The thread sanitizer does not see that libgomp's threads start after what precedes a parallel
  // region and end before what follows it.
  std::vector<std::jthread> others;
  for (int i = 1; i < n; ++i) {
    others.emplace_back([&task, i] {
      omp_set_num_threads(1);
      task(i);
    });
  }
  const int before = omp_get_max_threads();
  omp_set_num_threads(1);
  task(0);
  omp_set_num_threads(before);
#else
#pragma omp parallel for num_threads(n) schedule(static, 1)
  for (int i = 0; i < n; ++i) task(i);
#endif
}

// The threads that so many elementary operations are worth.
inline std::int64_t thread_count(std::int64_t operations) {
  if (omp_in_parallel()) return 1;
  return std::min<std::int64_t>(omp_get_max_threads(), 1 + operations / kParallelWorth);
}

// Calls body(begin, end) on disjoint ranges that cover [0, n), one per thread. `cost` is in
// elementary operations per item. Ranges start at multiples of 16 so that cache lines are not
// shared.
template <class Body>
void parallel_for(std::int64_t n, std::int64_t cost, const Body& body) {
  const std::int64_t threads =
      std::min<std::int64_t>(thread_count(n * cost), std::max<std::int64_t>(n, 1));
  const bool is_short = n * cost < kWaitWorth;
  if (threads <= 1 || (is_short && threads_are_late())) {
    if (n > 0) body(std::int64_t{0}, n);
    return;
  }
  const std::int64_t grain = n >= 64 * threads ? 16 : 1;
  const std::int64_t chunk = round_up(divide_up(n, threads), grain);
  std::exception_ptr error;
  std::mutex error_mutex;
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = is_short ? Clock::now() : Clock::time_point();
  Clock::time_point own_end;  // of the calling thread, whose number is 0
  on_threads(static_cast<int>(threads), [&](int thread) {
    const std::int64_t begin = thread * chunk;
    const std::int64_t end = std::min(n, begin + chunk);
    try {
      if (begin < end) body(begin, end);
    } catch (...) {
      const std::lock_guard lock(error_mutex);
      error = std::current_exception();
    }
    if (is_short && thread == 0) own_end = Clock::now();
  });
  if (is_short) note_region(own_end - start, Clock::now() - own_end);
  if (error) std::rethrow_exception(error);
}

}  // namespace renga
