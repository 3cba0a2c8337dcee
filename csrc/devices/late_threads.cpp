#include "devices/late_threads.h"

#include <algorithm>
#include <atomic>

namespace renga {
namespace {

// Threads that spin join after 2 us, and those that sleep after 50.
constexpr std::chrono::microseconds kLate{100};
constexpr int kFewest = 8, kMost = 512;  // regions that are run alone before the next attempt

// All threads share them, and none depends on another one's order: results do not depend on the
// number of threads.
std::atomic<int> regions_alone = 0;
std::atomic<int> next_regions_alone = kFewest;
std::atomic<bool> was_late = false;

}  // namespace

bool threads_are_late() {
  const int left = regions_alone.load(std::memory_order_relaxed);
  if (left <= 0) return false;
  regions_alone.store(left - 1, std::memory_order_relaxed);
  return true;
}

void note_region(std::chrono::steady_clock::duration worked,
                 std::chrono::steady_clock::duration waited) {
  const int next = next_regions_alone.load(std::memory_order_relaxed);
  if (waited <= worked + kLate) {
    was_late.store(false, std::memory_order_relaxed);
    if (next > kFewest) next_regions_alone.store(next - 1, std::memory_order_relaxed);
    return;
  }
  // The first region after a pause wakes threads, so that only the second one tells.
  if (!was_late.exchange(true, std::memory_order_relaxed)) return;
  was_late.store(false, std::memory_order_relaxed);
  regions_alone.store(next, std::memory_order_relaxed);
  next_regions_alone.store(std::min(2 * next, kMost), std::memory_order_relaxed);
}

}  // namespace renga
