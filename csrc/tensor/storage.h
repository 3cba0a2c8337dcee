// A block of a device's memory that arrays share.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "devices/device.h"
#include "tensor/ref.h"

namespace renga {

class Storage final : public RefCounted {
 public:
  // A fresh block from the caching allocator.
  Storage(std::size_t bytes, Device device);
  // Memory of another owner, which keeps it alive until `forget` is called.
  Storage(void* data, std::size_t bytes, Device device, std::function<void()> forget);
  // The memory of `owner`, which lends it to this storage alone and does not use it meanwhile.
  explicit Storage(const Ref<Storage>& owner);
  ~Storage() override;

  std::byte* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }
  Device device() const { return device_; }
  // Whether another owner, such as NumPy, allocated the memory and may use it.
  bool is_borrowed() const { return is_borrowed_; }

  // Counts how often the memory was handed to code outside the core, which may write to it at any
  // time from then on.
  void count_exposure() const { exposures_.fetch_add(1, std::memory_order_relaxed); }
  std::uint32_t exposures() const { return exposures_.load(std::memory_order_relaxed); }

  // Pending deferred computations that read this memory (lazy/deferred.h).
  int deferred_reads() const { return deferred_reads_.load(std::memory_order_acquire); }
  void count_deferred_read(int change) const { deferred_reads_.fetch_add(change); }

 private:
  std::byte* data_;
  std::size_t bytes_;
  Device device_;
  mutable std::atomic<std::uint32_t> exposures_{0};
  mutable std::atomic<int> deferred_reads_{0};
  std::function<void()> forget_;
  bool is_borrowed_ = false;
};

}  // namespace renga
