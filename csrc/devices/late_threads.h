// Threads that join parallel regions late. Where another process has their core, each region waits
// half a millisecond for a thread that is still to run, and a loop of 10 us takes fifty times as
// long. The threads that begin short regions then run them alone for a while, and try again.
#pragma once

#include <chrono>

namespace renga {

// Whether a short region is to be run by the calling thread alone. Each call counts as one region.
bool threads_are_late();

// What the thread that began a short region did in it: its own part of the work, then waiting for
// the other threads.
void note_region(std::chrono::steady_clock::duration worked,
                 std::chrono::steady_clock::duration waited);

}  // namespace renga
