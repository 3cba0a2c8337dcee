// Both ways to run a kernel share this: the order of blocks, the positions of threads, and shared
// memory.
#pragma once

#include <sys/mman.h>

#include <algorithm>
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
  static constexpr std::size_t kMost = 64 << 10, kPage = 4096;
  std::byte* end_;
  std::size_t bytes_ = 0;
};

}  // namespace cuda_standin
