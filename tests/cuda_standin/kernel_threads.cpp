// Threads of kernels as threads of the process, for the thread sanitizer: it reports two threads
// that access the same memory, shared or a device's, without a barrier between them. Shuffles do
// not order memory. This file itself is not instrumented; the sanitizer is told of barriers.
#include <sanitizer/tsan_interface.h>

#include <array>
#include <barrier>
#include <deque>
#include <span>
#include <thread>

#include "kernel.h"

constinit thread_local dim3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

namespace cuda_standin {
namespace {

constexpr unsigned kWarp = 32, kMostWarps = 32;
// Threads run one block after the other, which orders these blocks. With two teams of threads,
// those of one are not ordered with those of the other.
constexpr unsigned kTeams = 2;

enum class Wait { shuffle, block, end };

// Runs when all threads of a block or warp wait.
struct Completion {
  std::span<const Wait> waits;
  SharedMemory* shared = nullptr;  // of a block
  std::size_t shared_bytes = 0;
  void operator()() const noexcept {
    for (Wait wait : waits) {
      if (wait == waits[0]) continue;
      const bool is_shuffle = wait == Wait::shuffle || waits[0] == Wait::shuffle;
      fault(is_shuffle ? "shuffle: not all threads of the warp call it"
                       : "__syncthreads: not all threads of the block call it");
    }
    if (waits[0] == Wait::end && shared != nullptr) shared->poison(shared_bytes);
  }
};

// The threads that run a block, and what they share.
struct Team {
  Team(unsigned threads, std::size_t shared_bytes)
      : waits(threads), words(threads), block(threads, Completion{waits, &shared, shared_bytes}) {
    shared.poison(shared_bytes);
    for (unsigned begin = 0; begin < threads; begin += kWarp) {
      const unsigned size = std::min(kWarp, threads - begin);
      warps.emplace_back(size, Completion{std::span(waits).subspan(begin, size)});
    }
  }

  std::vector<Wait> waits;  // what each thread waits for
  // Each thread passed these to its last shuffles; others may still read the one before.
  std::vector<std::array<Words, 2>> words;
  SharedMemory shared;
  std::barrier<Completion> block;
  std::deque<std::barrier<Completion>> warps;
  // Their addresses stand for barriers: a thread may still leave one when others reach the next.
  char order[2], order_of_warps[kMostWarps];
};

thread_local Team* team = nullptr;
thread_local unsigned thread = 0, barriers = 0, exchanges = 0;

// Waits until all threads of the warp, and unless it is a shuffle of the block, wait for the same.
void wait_for(Wait what) {
  team->waits[thread] = what;
  team->warps[thread / kWarp].arrive_and_wait();
  if (what == Wait::shuffle) return;
  char* const order = &team->order[barriers++ % 2];
  __tsan_release(order);
  team->block.arrive_and_wait();
  __tsan_acquire(order);
}

}  // namespace

void* shared_memory() { return team->shared.data(); }

const Words& exchange(unsigned mask, const Words& mine, unsigned lane) {
  if (mask != 0xffffffffu) fault("shuffle: renga's are of whole warps");
  if (team->waits.size() % kWarp != 0) fault("shuffle: the block has an incomplete warp");
  team->words[thread][exchanges++ % 2] = mine;
  wait_for(Wait::shuffle);
  return exchanged(lane);
}

const Words& exchanged(unsigned lane) {
  return team->words[thread / kWarp * kWarp + lane][(exchanges - 1) % 2];
}

void wait_for_warp() {
  char* const order = &team->order_of_warps[thread / kWarp];
  __tsan_release(order);
  exchange(0xffffffffu, {}, 0);
  __tsan_acquire(order);
}

LateCopies& late_copies() {
  thread_local LateCopies copies;
  return copies;
}

void run_grid(const cudaLaunchConfig_t& config, const std::function<void()>& body) {
  gridDim = config.gridDim;
  blockDim = config.blockDim;
  const unsigned size = blockDim.x * blockDim.y * blockDim.z;
  const std::vector<dim3> blocks = shuffled_blocks(gridDim);
  const auto run_thread = [&](Team* mine, unsigned index, std::size_t begin) {
    team = mine;
    thread = index;
    threadIdx = position_of(index);
    for (std::size_t b = begin; b < blocks.size(); b += kTeams) {
      blockIdx = blocks[b];
      body();
      wait_for(Wait::end);
    }
  };
  std::deque<Team> teams;
  std::vector<std::thread> threads;
  for (std::size_t begin = 0; begin < std::min<std::size_t>(kTeams, blocks.size()); ++begin) {
    Team& fresh = teams.emplace_back(size, config.dynamicSmemBytes);
    for (unsigned i = 0; i < size; ++i) threads.emplace_back(run_thread, &fresh, i, begin);
  }
  for (std::thread& running : threads) running.join();
}

}  // namespace cuda_standin

void __syncthreads() { cuda_standin::wait_for(cuda_standin::Wait::block); }
