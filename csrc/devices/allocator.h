// The caching allocator: freed blocks are kept, small ones by size class and large ones to be cut
// and joined, and handed out again, so that a training step in its steady state never asks the
// system for memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>

#include "devices/device.h"

namespace renga {

// Memory is exhausted; the message names the size asked for. Python sees MemoryError.
class OutOfMemory : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Bytes, except for the three counters of events since the process started.
struct MemoryStats {
  std::int64_t in_use = 0;
  std::int64_t peak = 0;
  std::int64_t cached = 0;
  std::int64_t allocations = 0;  // blocks handed out
  std::int64_t hits = 0;         // of those, in memory that was used before
  std::int64_t reserves = 0;     // of those, in memory that was not
};

// A block of at least `bytes`, aligned to 64. Throws OutOfMemory after the cache was emptied in
// vain.
void* allocate(std::size_t bytes, Device device);
// Gives a block back; `bytes` is the size asked for.
void deallocate(void* block, std::size_t bytes, Device device) noexcept;

MemoryStats memory_stats(Device device);
// Returns every cached block of the device to the system.
void empty_cache(Device device);

}  // namespace renga
