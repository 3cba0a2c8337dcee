// Threads of kernels: blocks and threads run in random order. A thread runs on a fiber, so that it
// can wait for the others of its block or warp; those that never wait share one. For the thread
// sanitizer, kernel_threads.cpp takes the place of this file.
#include "kernel.h"

#include <setjmp.h>
#include <ucontext.h>

#include <numeric>
#include <span>

dim3 threadIdx, blockIdx, blockDim, gridDim;

namespace cuda_standin {
namespace {

constexpr std::size_t kStack = 64 << 10, kPage = 4096, kMostThreads = 1024, kWarp = 32;

enum class Wait { none, block, warp, finished };

struct Fiber {
  ucontext_t start;
  jmp_buf at;
  bool started = false;
  unsigned thread = 0;  // the one that it runs
};

struct Lane {
  Wait wait = Wait::none;
  Fiber* fiber = nullptr;
  unsigned exchanges = 0;  // that it has begun
  Words words[2];          // passed to the last ones; others may still read the one before
  LateCopies copies;
};

// The block that runs.
struct Block {
  const std::function<void()>* body;
  unsigned size;
  std::vector<unsigned> order;  // threads that have not begun
  std::vector<Lane> lanes;
  Fiber* running;
  jmp_buf scheduler;
};
Block block;
std::vector<Fiber*> idle;

// Back to the scheduler until it resumes this fiber.
void leave() {
  Fiber& mine = *block.running;
  if (_setjmp(mine.at) == 0) _longjmp(block.scheduler, 1);
}

void run_threads() {
  for (;;) {
    while (!block.order.empty()) {
      const unsigned thread = block.order.back();
      block.order.pop_back();
      block.running->thread = thread;
      block.lanes[thread].fiber = block.running;
      threadIdx = position_of(thread);
      (*block.body)();
      block.lanes[thread].wait = Wait::finished;
    }
    idle.push_back(block.running);
    leave();
  }
}

Fiber* make_fiber() {
  auto* fiber = new Fiber;
  void* stack = mmap(nullptr, kStack, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (stack == MAP_FAILED) fault("no memory for a thread's stack");
  mprotect(stack, kPage, PROT_NONE);
  getcontext(&fiber->start);
  fiber->start.uc_stack.ss_sp = stack;
  fiber->start.uc_stack.ss_size = kStack;
  makecontext(&fiber->start, run_threads, 0);
  return fiber;
}

void resume(Fiber* fiber) {
  block.running = fiber;
  threadIdx = position_of(fiber->thread);
  if (_setjmp(block.scheduler) != 0) return;
  if (std::exchange(fiber->started, true)) _longjmp(fiber->at, 1);
  setcontext(&fiber->start);
}

// Waits until all other threads in [begin, end) wait for the same.
void wait_for(Wait what, unsigned thread) {
  block.lanes[thread].wait = what;
  leave();
}

// Lets the threads in [begin, end) go on if all of them wait for `what`.
bool release(Wait what, unsigned begin, unsigned end) {
  const auto lanes = std::span(block.lanes).subspan(begin, end - begin);
  const auto waits = [what](const Lane& lane) { return lane.wait == what; };
  if (std::ranges::none_of(lanes, waits)) return false;
  if (!std::ranges::all_of(lanes, waits)) return false;
  for (Lane& lane : lanes) lane.wait = Wait::none;
  return true;
}

void run_block() {
  block.lanes.assign(block.size, {});
  block.order.resize(block.size);
  std::iota(block.order.begin(), block.order.end(), 0u);
  std::shuffle(block.order.begin(), block.order.end(), random());
  while (!block.order.empty()) {
    if (idle.empty()) idle.push_back(make_fiber());
    Fiber* fiber = idle.back();
    idle.pop_back();
    resume(fiber);
  }
  std::vector<unsigned> threads(block.size);
  std::iota(threads.begin(), threads.end(), 0u);
  for (;;) {
    bool released = release(Wait::block, 0, block.size);
    for (unsigned w = 0; w < block.size; w += kWarp) {
      released |= release(Wait::warp, w, std::min<unsigned>(block.size, w + kWarp));
    }
    if (!released) break;
    std::shuffle(threads.begin(), threads.end(), random());
    for (unsigned thread : threads) {
      if (block.lanes[thread].wait == Wait::none) resume(block.lanes[thread].fiber);
    }
  }
  for (const Lane& lane : block.lanes) {
    if (lane.wait == Wait::block) fault("__syncthreads: not all threads of the block call it");
    if (lane.wait == Wait::warp) fault("shuffle: not all threads of the warp call it");
    if (!lane.copies.empty()) fault("cp.async: a thread ends before its copies");
  }
}

Lane& running_lane() { return block.lanes[block.running->thread]; }

SharedMemory& memory() {
  static SharedMemory shared;
  return shared;
}

}  // namespace

void* shared_memory() { return memory().data(); }

const Words& exchange(unsigned mask, const Words& mine, unsigned lane) {
  if (mask != 0xffffffffu) fault("shuffle: renga's are of whole warps");
  if (block.size % kWarp != 0) fault("shuffle: the block has an incomplete warp");
  Lane& own = running_lane();
  own.words[own.exchanges++ % 2] = mine;
  wait_for(Wait::warp, block.running->thread);
  return exchanged(lane);
}

const Words& exchanged(unsigned lane) {
  const unsigned thread = block.running->thread / kWarp * kWarp + lane;
  return block.lanes[thread].words[(running_lane().exchanges - 1) % 2];
}

void wait_for_warp() { exchange(0xffffffffu, {}, 0); }

LateCopies& late_copies() { return running_lane().copies; }

void run_grid(const cudaLaunchConfig_t& config, const std::function<void()>& body) {
  gridDim = config.gridDim;
  blockDim = config.blockDim;
  block.body = &body;
  block.size = blockDim.x * blockDim.y * blockDim.z;
  for (const dim3& position : shuffled_blocks(gridDim)) {
    blockIdx = position;
    memory().poison(config.dynamicSmemBytes);
    run_block();
  }
}

}  // namespace cuda_standin

void __syncthreads() {
  using namespace cuda_standin;
  wait_for(Wait::block, block.running->thread);
}
