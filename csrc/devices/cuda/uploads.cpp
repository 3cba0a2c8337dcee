#include "devices/uploads.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "devices/allocator.h"
#include "devices/cuda/cuda.h"
#include "devices/cuda/event.h"
#include "devices/cuda/recording.h"
#include "devices/gil_release.h"

namespace renga::cuda {
namespace {

// Blocks of one batch are taken for the next, whose size may differ a little.
std::size_t rounded(std::size_t bytes) {
  const std::size_t step = std::max<std::size_t>(std::bit_floor(bytes) / 8, 512);
  return (bytes + step - 1) / step * step;
}

struct Pinned {
  std::size_t bytes;
  std::unique_ptr<Event> copied;  // after the last copy from it, if there was one
  int device = 0;                 // to which that was
};

struct Block {
  std::size_t bytes;
  int device;
  std::unique_ptr<Event> vacant, arrived;
  bool is_awaited = true;
};

class Uploads {
 public:
  void* take_pinned(std::size_t bytes, int index) {
    const std::size_t size = rounded(bytes);
    const std::lock_guard lock(mutex_);
    const auto found = std::find_if(idle_pinned_.begin(), idle_pinned_.end(), [&](auto& entry) {
      return entry.second.bytes == size && is_copied(entry.second);
    });
    if (found != idle_pinned_.end()) {
      void* const memory = found->first;
      pinned_.insert(idle_pinned_.extract(found));
      return memory;
    }
    free_pinned_all_but(kKept);
    const Use use(index);
    void* memory = nullptr;
    RENGA_CUDA(cudaMallocHost(&memory, size));
    pinned_[memory] = {size, nullptr, index};
    return memory;
  }

  void give_pinned(void* memory) {
    const std::lock_guard lock(mutex_);
    idle_pinned_.insert(pinned_.extract(memory));
  }

  void* take(std::size_t bytes, int index) {
    require_no_recording("a copy from the host");
    const std::size_t size = rounded(bytes);
    const std::lock_guard lock(mutex_);
    // The oldest first: what used it is over.
    const auto found = std::find_if(idle_.begin(), idle_.end(), [&](const auto& entry) {
      return entry.second.bytes == size && entry.second.device == index;
    });
    if (found != idle_.end()) {
      void* const memory = found->first;
      blocks_[memory] = std::move(found->second);
      idle_.erase(found);
      return memory;
    }
    give_back_all_but(kKept);
    const Device device{number(), static_cast<std::int16_t>(index)};
    void* const memory = allocate(size, device);
    const Use use(index);
    Block block{size, index, std::make_unique<Event>(cudaEventDisableTiming),
                std::make_unique<Event>(cudaEventDisableTiming)};
    block.vacant->record(
        cuda::stream());  // the allocator's blocks may still be in use on the current stream
    blocks_[memory] = std::move(block);
    return memory;
  }

  void give(void* memory) {
    const std::lock_guard lock(mutex_);
    const auto found = blocks_.find(memory);
    Block block = std::move(found->second);
    blocks_.erase(found);
    const Use use(block.device);
    await(block);
    block.vacant->record(cuda::stream());
    idle_.emplace_back(memory, std::move(block));
  }

  void copy(void* memory, const void* from, std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    Block& block = blocks_.at(memory);
    const auto pinned = pinned_.find(const_cast<void*>(from));
    const Use use(block.device);
    const cudaStream_t stream = stream_of(block.device);
    block.vacant->hold(stream);
    RENGA_CUDA(cudaMemcpyAsync(memory, from, bytes, cudaMemcpyHostToDevice, stream));
    block.arrived->record(stream);
    block.is_awaited = false;
    if (pinned == pinned_.end()) return;
    auto& [_, copied, device] = pinned->second;
    // The last copy is over after all others, also after those to other devices.
    if (copied && device != block.device) copied->hold(stream);
    device = block.device;
    copied = std::make_unique<Event>(cudaEventDisableTiming);
    copied->record(stream);
  }

  void wait(void* memory) {
    const std::lock_guard lock(mutex_);
    Block& block = blocks_.at(memory);
    const Use use(block.device);
    await(block);
  }

  bool is_pinned(const void* memory) {
    const std::lock_guard lock(mutex_);
    return pinned_.contains(const_cast<void*>(memory));
  }

 private:
  static constexpr std::size_t kKept = 8;  // idle blocks

  static bool is_copied(const Pinned& pinned) { return !pinned.copied || pinned.copied->is_over(); }

  void free_pinned_all_but(std::size_t kept) {
    for (auto it = idle_pinned_.begin(); it != idle_pinned_.end() && idle_pinned_.size() > kept;) {
      if (is_copied(it->second)) {
        cudaFreeHost(it->first);
        it = idle_pinned_.erase(it);
      } else {
        ++it;
      }
    }
  }

  static void await(Block& block) {
    if (!std::exchange(block.is_awaited, true)) block.arrived->hold(stream());
  }

  void give_back_all_but(std::size_t kept) {
    for (; idle_.size() > kept; idle_.pop_front()) {
      auto& [memory, block] = idle_.front();
      const Use use(block.device);
      block.vacant->hold(stream());  // another thread may have given it, on another stream
      deallocate(memory, block.bytes, {number(), static_cast<std::int16_t>(block.device)});
    }
  }

  // Returns the stream of `device`, which is the current device.
  cudaStream_t stream_of(int device) {
    cudaStream_t& stream = streams_[device];
    if (stream == nullptr) RENGA_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    return stream;
  }

  std::mutex mutex_;
  std::map<void*, Pinned> pinned_, idle_pinned_;
  std::map<void*, Block> blocks_;
  std::deque<std::pair<void*, Block>> idle_;
  std::map<int, cudaStream_t> streams_;
};

Uploads& uploads() {
  static auto* const all = new Uploads;  // never destroyed: arrays may outlive all statics
  return *all;
}

void copy(void* block, const void* from, std::size_t bytes, int index) {
  if (uploads().is_pinned(from)) {
    uploads().copy(block, from, bytes);
    return;
  }
  void* const staged = uploads().take_pinned(bytes, index);
  {
    const GilRelease lend;
    std::memcpy(staged, from, bytes);
  }
  uploads().copy(block, staged, bytes);
  uploads().give_pinned(staged);
}

// Arrays end where nothing may be thrown: what is wrong with the device shows in the calls that
// follow, and the block is lost.
void give(void* block) noexcept {
  try {
    uploads().give(block);
  } catch (const std::exception&) {
  }
}

[[maybe_unused]] const bool registered = upload_kernels.add(
    number(),
    {[](std::size_t bytes, int index, void** block) {
       *block = uploads().take_pinned(bytes, index);
     },
     [](void* block) { uploads().give_pinned(block); },
     [](std::size_t bytes, int index, void** block) { *block = uploads().take(bytes, index); },
     [](void* block) { give(block); },
     [](void* block, const void* from, std::size_t bytes, int index) {
       copy(block, from, bytes, index);
     },
     [](void* block) { uploads().wait(block); }});

}  // namespace
}  // namespace renga::cuda
