#include "devices/guarded_blocks.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "devices/cpu/memory.h"
#include "devices/rounding.h"

namespace renga {
namespace {

constexpr std::int64_t kPage = 4096, kAlignment = 64;
constexpr unsigned char kUnwritten = 255;
// Blocks from this size on, all of which is written here, are compared with what is available.
constexpr std::size_t kCounted = std::size_t{1} << 30;

// The pages of a block, which ends with the last of them.
struct Pages {
  explicit Pages(std::size_t bytes)
      : bytes(static_cast<std::size_t>(round_up(static_cast<std::int64_t>(bytes), kPage))),
        offset(this->bytes -
               static_cast<std::size_t>(round_up(static_cast<std::int64_t>(bytes), kAlignment))) {}
  std::size_t bytes;
  std::size_t offset;  // of the block
};

bool are_unwritten(const unsigned char* begin, const unsigned char* end) {
  return std::all_of(begin, end, [](unsigned char byte) { return byte == kUnwritten; });
}

}  // namespace

void* take_guarded_block(std::size_t bytes) {
  if (bytes >= kCounted && static_cast<std::int64_t>(bytes) > available_memory()) return nullptr;
  const Pages pages(bytes);
  void* const begin = mmap(nullptr, pages.bytes + kPage, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (begin == MAP_FAILED) return nullptr;
  mprotect(static_cast<unsigned char*>(begin) + pages.bytes, kPage, PROT_NONE);
  std::memset(begin, kUnwritten, pages.bytes);
  return static_cast<unsigned char*>(begin) + pages.offset;
}

void release_guarded_block(void* block, std::size_t bytes) noexcept {
  const Pages pages(bytes);
  auto* const at = static_cast<unsigned char*>(block);
  unsigned char* const begin = at - pages.offset;
  if (!are_unwritten(begin, at) || !are_unwritten(at + bytes, begin + pages.bytes)) {
    std::fprintf(stderr, "renga: bytes beside a block of %zu bytes were written\n", bytes);
    std::abort();
  }
  munmap(begin, pages.bytes + kPage);
}

}  // namespace renga
