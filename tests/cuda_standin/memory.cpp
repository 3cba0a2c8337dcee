// Memory of devices, pinned memory and copies.
//
// A device's memory is a range of addresses that only kernels and copies may touch. Fresh blocks
// are filled with NaN, freed ones are filled again.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "standin.h"

namespace cuda_standin {
namespace {

constexpr std::size_t kCapacity = std::size_t{2} << 30, kAlignment = 512;
constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr int kPoison = 0xff;

struct Arena {
  std::byte* base = nullptr;
  std::size_t end = 0;                              // of the part that was ever used
  std::map<std::size_t, std::size_t> used, vacant;  // offsets and sizes
  int open = 0;                                     // scopes of Access
  bool accessible = false;
  std::size_t accessible_end = 0;
};

std::size_t capacity = kCapacity;  // that programs may use
std::map<const std::byte*, std::size_t> pinned;

Arena& arena(int device) {
  static auto* const all = [] {
    auto* fresh = new Arena[kDevices];
    for (int i = 0; i < kDevices; ++i) {
      void* raw = mmap(nullptr, kCapacity + kHugePage, PROT_NONE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (raw == MAP_FAILED) fault("no addresses for a device's memory");
      const auto start = reinterpret_cast<std::uintptr_t>(raw);
      // The protection of huge pages is changed in less time.
      const std::uintptr_t base = (start + kHugePage - 1) / kHugePage * kHugePage;
      fresh[i].base = reinterpret_cast<std::byte*>(base);
      madvise(fresh[i].base, kCapacity, MADV_HUGEPAGE);
    }
    return fresh;
  }();
  return all[device];
}

// The first vacant range that is large enough, or a new one; kCapacity where there is none.
std::size_t take(Arena& a, std::size_t bytes) {
  for (auto it = a.vacant.begin(); it != a.vacant.end(); ++it) {
    const auto [offset, size] = *it;
    if (size < bytes) continue;
    a.vacant.erase(it);
    if (size > bytes) a.vacant[offset + bytes] = size - bytes;
    return offset;
  }
  if (a.end + bytes > capacity) return kCapacity;
  return std::exchange(a.end, a.end + bytes);
}

}  // namespace

namespace {

void set_accessible(Arena& a, bool accessible) {
  if (a.accessible == accessible && (!accessible || a.accessible_end == a.end)) return;
  mprotect(a.base, (a.end + kHugePage - 1) / kHugePage * kHugePage,
           accessible ? PROT_READ | PROT_WRITE : PROT_NONE);
  a.accessible = accessible;
  a.accessible_end = a.end;
}

}  // namespace

Access::Access(int device) : device_(device) {
  mutex().lock();
  ++arena(device).open;
  for (int i = 0; i < kDevices; ++i) set_accessible(arena(i), arena(i).open > 0);
}

Access::~Access() {
  --arena(device_).open;
  mutex().unlock();
}

void end_access() {
  const std::lock_guard lock(mutex());
  for (int i = 0; i < kDevices; ++i) set_accessible(arena(i), arena(i).open > 0);
}

int device_at(const void* address) {
  for (int i = 0; i < kDevices; ++i) {
    const std::byte* base = arena(i).base;
    if (address >= base && address < base + kCapacity) return i;
  }
  return -1;
}

bool is_allocated(int device, const void* data, std::size_t bytes) {
  const std::lock_guard lock(mutex());
  const Arena& a = arena(device);
  const auto offset = static_cast<std::size_t>(static_cast<const std::byte*>(data) - a.base);
  auto after = a.used.upper_bound(offset);
  if (after == a.used.begin()) return false;
  const auto& [begin, size] = *--after;
  return offset + bytes <= begin + size;
}

namespace {

bool is_mapped(std::uintptr_t address) {
  static const auto kPage = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  unsigned char resident = 0;
  return mincore(reinterpret_cast<void*>(address / kPage * kPage), kPage, &resident) == 0;
}

// Whether the program can write at an address of the host: its heap, stacks and statics. The list
// of mappings, which takes long to read, is read once for each constant of a library: it stays
// there.
bool is_writable_host_memory(std::uintptr_t address) {
  static std::set<std::uintptr_t> constants;
  if (constants.contains(address) || !is_mapped(address)) return false;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t begin = 0, end = 0;
    char read = 0, write = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx %c%c", &begin, &end, &read, &write) != 4) continue;
    if (address < begin || address >= end) continue;
    if (read == 'r' && write == '-') constants.insert(address);
    return read == 'r' && write == 'w';
  }
  return false;
}

// A pointer may also be the end of a block. Constants of the program, such as the names that
// kernels pass on, may be arguments, as kernels do not read them. Below 4 GiB nothing is taken for
// a pointer: floats and numbers of 32 bits look like addresses there, where an interpreter that is
// not position-independent has its heap.
bool is_readable(int device, std::uintptr_t address) {
  constexpr std::uintptr_t kLowest = std::uintptr_t{1} << 32, kHighest = std::uintptr_t{1} << 47;
  if (address < kLowest || address >= kHighest) return true;  // no pointer
  const auto* const data = reinterpret_cast<const void*>(address);
  const int where = device_at(data);
  if (where >= 0) return where == device && is_allocated(device, data, 0);
  return is_pinned(data) || !is_writable_host_memory(address);
}

}  // namespace

bool are_readable_words(cudaStream_t stream, const void* argument, std::size_t bytes) {
  const std::lock_guard lock(mutex());
  require_known(stream);
  const int device = device_of(stream);
  for (std::size_t at = 0; at + sizeof(std::uintptr_t) <= bytes; at += sizeof(std::uintptr_t)) {
    std::uintptr_t word = 0;
    std::memcpy(&word, static_cast<const std::byte*>(argument) + at, sizeof(word));
    if (is_readable(device, word)) continue;
    std::fprintf(stderr, "CUDA stand-in: byte %zu of a kernel's argument has address %#zx, %s\n",
                 at, word, "which is not in an allocation of its device");
    failed(cudaErrorIllegalAddress);
    return false;
  }
  return true;
}

bool is_pinned(const void* address) {
  const std::lock_guard lock(mutex());
  const auto* p = static_cast<const std::byte*>(address);
  const auto after = pinned.upper_bound(p);
  return after != pinned.begin() && p < std::prev(after)->first + std::prev(after)->second;
}

namespace {

bool is_valid(const void* data, std::size_t bytes, bool on_device) {
  const int device = device_at(data);
  return (device >= 0) == on_device && (!on_device || is_allocated(device, data, bytes));
}

// `from` was read before or stays valid.
cudaError_t enqueue_copy(void* to, const void* from, std::size_t bytes, cudaStream_t stream) {
  const int target = device_at(to), source = device_at(from);
  return enqueue(stream, {[=] {
                            const Access a(target < 0 ? std::max(source, 0) : target);
                            const Access b(source < 0 ? std::max(target, 0) : source);
                            std::memmove(to, from, bytes);
                          },
                          {}});
}

}  // namespace
}  // namespace cuda_standin

using namespace cuda_standin;

extern "C" {
// Tests set the bytes of a device.
void cuda_standin_capacity(std::size_t bytes) { capacity = bytes; }

cudaError_t cudaMalloc(void** block, std::size_t bytes) {
  if (const cudaError_t error = begin_call()) return error;
  const std::lock_guard lock(mutex());
  const std::size_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  Arena& a = arena(current_device());
  const std::size_t offset = take(a, rounded);
  if (offset == kCapacity) return failed(cudaErrorMemoryAllocation);
  a.used[offset] = bytes;
  *block = a.base + offset;
  {
    const Access memory(current_device());
    std::memset(*block, kPoison, bytes);
  }
  end_access();
  return cudaSuccess;
}

cudaError_t cudaFree(void* block) {
  if (block == nullptr) return cudaSuccess;
  if (const cudaError_t error = cudaDeviceSynchronize()) return error;  // as the real one does
  const int device = device_at(block);
  if (device < 0) return failed(cudaErrorInvalidValue);
  const std::lock_guard lock(mutex());
  Arena& a = arena(device);
  const auto found = a.used.find(static_cast<std::size_t>(static_cast<std::byte*>(block) - a.base));
  if (found == a.used.end()) return failed(cudaErrorInvalidValue);
  {
    const Access memory(device);
    std::memset(block, kPoison, found->second);
  }
  end_access();
  a.vacant[found->first] = (found->second + kAlignment - 1) / kAlignment * kAlignment;
  a.used.erase(found);
  return cudaSuccess;
}

cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  const std::lock_guard lock(mutex());
  *total = *free = capacity;
  for (const auto& [offset, bytes] : arena(current_device()).used) *free -= bytes;
  return cudaSuccess;
}

cudaError_t cudaMallocHost(void** block, std::size_t bytes) {
  if (const cudaError_t error = begin_call()) return error;
  const std::lock_guard lock(mutex());
  *block = std::aligned_alloc(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
  if (*block == nullptr) return failed(cudaErrorMemoryAllocation);
  std::memset(*block, kPoison, bytes);
  pinned[static_cast<std::byte*>(*block)] = bytes;
  return cudaSuccess;
}

cudaError_t cudaFreeHost(void* block) {
  const std::lock_guard lock(mutex());
  if (pinned.erase(static_cast<std::byte*>(block)) == 0) return failed(cudaErrorInvalidValue);
  std::free(block);
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  if (const cudaError_t error = begin_call()) return error;
  if (bytes == 0) return cudaSuccess;
  const bool reads = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  const bool writes = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  if (!is_valid(from, bytes, reads) || !is_valid(to, bytes, writes)) {
    return failed(cudaErrorInvalidValue);
  }
  CudaStandinGraph* const capture = capture_of(stream);
  const bool is_pageable = (!reads && !is_pinned(from)) || (!writes && !is_pinned(to));
  // Hardware would read or write the same addresses in each run.
  if (capture != nullptr && is_pageable) {
    return refuse_in_capture(*capture, cudaErrorStreamCaptureUnsupported);
  }
  if (!reads && !is_pinned(from)) {
    // The memory is read before the call returns, and arrives later. More than what fits into a
    // command waits for the stream first.
    constexpr std::size_t kInCommand = 64 << 10;
    if (bytes > kInCommand) {
      if (const cudaError_t error = cudaStreamSynchronize(stream)) return error;
    }
    auto staged = std::make_shared<std::vector<std::byte>>(
        static_cast<const std::byte*>(from), static_cast<const std::byte*>(from) + bytes);
    return enqueue(stream, {[=] {
                              const Access memory(device_at(to));
                              std::memcpy(to, staged->data(), bytes);
                            },
                            {}});
  }
  if (const cudaError_t error = enqueue_copy(to, from, bytes, stream)) return error;
  return writes || is_pinned(to) ? cudaSuccess : cudaStreamSynchronize(stream);
}

cudaError_t cudaMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device,
                                std::size_t bytes, cudaStream_t stream) {
  if (const cudaError_t error = begin_call()) return error;
  if (device_at(to) != to_device || device_at(from) != from_device || !is_valid(to, bytes, true) ||
      !is_valid(from, bytes, true)) {
    return failed(cudaErrorInvalidValue);
  }
  return enqueue_copy(to, from, bytes, stream);
}

cudaError_t cudaMemsetAsync(void* to, int byte, std::size_t bytes, cudaStream_t stream) {
  if (const cudaError_t error = begin_call()) return error;
  if (!is_valid(to, bytes, true)) return failed(cudaErrorInvalidValue);
  return enqueue(stream, {[=] {
                            const Access memory(device_at(to));
                            std::memset(to, byte, bytes);
                          },
                          {}});
}
}
