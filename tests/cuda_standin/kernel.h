// Both ways to run a kernel share this: the order of blocks, the positions of threads, and shared
// memory.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <vector>

#include "standin.h"

namespace cuda_standin {

// The positions of all blocks of a grid, in random order.
inline std::vector<dim3> shuffled_blocks(const dim3& grid) {
  std::vector<dim3> blocks;
  for (unsigned z = 0; z < grid.z; ++z) {
    for (unsigned y = 0; y < grid.y; ++y) {
      for (unsigned x = 0; x < grid.x; ++x) blocks.emplace_back(x, y, z);
    }
  }
  std::shuffle(blocks.begin(), blocks.end(), random());
  return blocks;
}

// The position of a thread in its block.
inline dim3 position_of(unsigned thread) {
  return {thread % blockDim.x, thread / blockDim.x % blockDim.y, thread / blockDim.x / blockDim.y};
}

// What a thread copies into shared memory beside its computations: nothing is there before it
// waits.
class LateCopies {
 public:
  struct Copy {
    void* to;
    const void* from;  // nullptr for zeros
    std::size_t bytes;
  };
  void add(const Copy& copy) { copies_.push_back(copy); }
  void end_group() { ends_.push_back(copies_.size()); }
  // Makes the copies of all groups that have ended but the last `but`.
  void wait(std::size_t but) {
    if (ends_.size() <= but) return;
    const auto end = ends_.end() - static_cast<std::ptrdiff_t>(but);
    const std::size_t count = end[-1];
    for (const auto& [to, from, bytes] : std::span(copies_).first(count)) {
      from == nullptr ? std::memset(to, 0, bytes) : std::memcpy(to, from, bytes);
    }
    copies_.erase(copies_.begin(), copies_.begin() + static_cast<std::ptrdiff_t>(count));
    ends_.erase(ends_.begin(), end);
    for (std::size_t& later : ends_) later -= count;
  }
  bool empty() const { return copies_.empty(); }

 private:
  std::vector<Copy> copies_;
  std::vector<std::size_t> ends_;  // of groups
};

// Those of the thread that runs.
LateCopies& late_copies();

// The shared memory of a block. It ends where nothing may be written.
class SharedMemory {
 public:
  SharedMemory() {
    void* base =
        mmap(nullptr, kMost + kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED) fault("no shared memory");
    end_ = static_cast<std::byte*>(base) + kMost;
    mprotect(end_, kPage, PROT_NONE);
  }
  ~SharedMemory() { munmap(end_ - kMost, kMost + kPage); }
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  // That of a new block, NaN. The thread sanitizer would see the writes of memset.
  void poison(std::size_t bytes) {
    bytes_ = (bytes + 15) / 16 * 16;
    auto* const words = reinterpret_cast<volatile std::uint64_t*>(data());
    for (std::size_t i = 0; i < bytes_ / sizeof(*words); ++i) words[i] = ~std::uint64_t{0};
  }
  std::byte* data() const { return end_ - bytes_; }

 private:
  static constexpr std::size_t kPage = 4096, kMost = (kMostShared + kPage - 1) / kPage * kPage;
  std::byte* end_;
  std::size_t bytes_ = 0;
};

}  // namespace cuda_standin
