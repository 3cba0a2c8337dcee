// The caching allocator: freed blocks are cached, small ones by size class, large ones with
// splitting and coalescing, so that training in its steady state never allocates from the system.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>

#include "devices/device.h"

namespace renga {

// Memory is exhausted; the message names the requested size. MemoryError in Python.
class OutOfMemory : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Bytes, except for the three counters of events since the process started.
struct MemoryStats {
  std::int64_t in_use = 0;
  std::int64_t peak = 0;
  std::int64_t cached = 0;
  std::int64_t allocations = 0;  // blocks allocated
  std::int64_t hits = 0;         // of those, served from the cache
  std::int64_t reserves = 0;     // of those, in fresh memory of the system
};

// A block of at least `bytes`, aligned to 64. Empties the cache before it throws OutOfMemory.
void* allocate(std::size_t bytes, Device device);
// Frees a block; `bytes` is the requested size.
void deallocate(void* block, std::size_t bytes, Device device) noexcept;

MemoryStats memory_stats(Device device);
// Returns every cached block of the device to the system.
void empty_cache(Device device);

}  // namespace renga
