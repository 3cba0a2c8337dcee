// The CPU as a device. Large blocks ask for huge pages: a first touch by 4 KiB pages runs at about
// a fifth of the speed.
#include <sys/mman.h>

#include <cstdlib>
#include <cstring>

#include "devices/cpu/memory.h"
#include "devices/host.h"

namespace renga {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;
// Blocks from this size on are compared with what is available, which takes about 50 µs.
constexpr std::size_t kCounted = std::size_t{1} << 30;

class CpuDriver final : public Driver {
 public:
  std::string name() const override { return "cpu"; }
  int count() const override { return 1; }

  void* reserve(std::size_t bytes, int) override {
    // The system promises more than there is, and kills the process that uses it.
    if (bytes >= kCounted && static_cast<std::int64_t>(bytes) > available_memory()) return nullptr;
    if (bytes < kHugePage) return std::aligned_alloc(64, (bytes + 63) / 64 * 64);
    // Over-reserve so that the block can start on a huge-page border, then give the ends back.
    const std::size_t span = round_up(bytes) + kHugePage;
    void* raw = mmap(nullptr, span, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (raw == MAP_FAILED) return nullptr;
    const auto start = reinterpret_cast<std::uintptr_t>(raw);
    const std::uintptr_t aligned = (start + kHugePage - 1) / kHugePage * kHugePage;
    const std::uintptr_t end = aligned + round_up(bytes);
    if (aligned > start) munmap(raw, aligned - start);
    if (start + span > end) munmap(reinterpret_cast<void*>(end), start + span - end);
    void* block = reinterpret_cast<void*>(aligned);
    madvise(block, round_up(bytes), MADV_HUGEPAGE);
    return block;
  }

  void release(void* block, std::size_t bytes, int) override {
    if (bytes < kHugePage) {
      std::free(block);
    } else {
      munmap(block, round_up(bytes));
    }
  }

  bool forget(void* block, std::size_t bytes, int) override {
    return madvise(block, bytes, MADV_DONTNEED) == 0;
  }

  void copy_from_host(void* to, const void* from, std::size_t bytes, int) override {
    std::memcpy(to, from, bytes);
  }
  void copy_to_host(void* to, const void* from, std::size_t bytes, int) override {
    std::memcpy(to, from, bytes);
  }
  void copy_within(void* to, const void* from, std::size_t bytes, int) override {
    std::memmove(to, from, bytes);
  }
  void synchronize(int) override {}

 private:
  static std::size_t round_up(std::size_t bytes) {
    return (bytes + kHugePage - 1) / kHugePage * kHugePage;
  }
};

}  // namespace

Driver& host_driver() {
  static CpuDriver driver;
  return driver;
}

}  // namespace renga
