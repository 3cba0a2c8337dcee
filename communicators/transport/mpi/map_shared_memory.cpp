#include "transport/mpi/map_shared_memory.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "devices/forked_processes.h"
#include "transport/mpi/mpi_transport.h"

namespace renga {

namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kHugePage = std::size_t{1} << 21;
constexpr int kMadvCollapse = 25;  // MADV_COLLAPSE, missing in headers older than Linux 6.1

// How other processes find the file of rank 0, which has no name: in /proc, by its process and
// descriptor. Device and inode tell whether what they find is that file.
struct FileHandle {
  int process = 0;
  int file = -1;
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
};

int create(std::size_t bytes) {
  const int file = memfd_create("renga", MFD_CLOEXEC);
  if (file >= 0 && ftruncate(file, static_cast<off_t>(bytes)) != 0) {
    close(file);
    return -1;
  }
  return file;
}

FileHandle handle_of(int file) {
  struct stat status {};
  if (file < 0 || fstat(file, &status) != 0) return {};
  return {static_cast<int>(getpid()), file, status.st_dev, status.st_ino};
}

// A descriptor of the file, or -1: a process of another container has no permission, or sees
// another process under that number.
int open_handle(const FileHandle& handle) {
  if (handle.file < 0) return -1;
  const std::string path =
      "/proc/" + std::to_string(handle.process) + "/fd/" + std::to_string(handle.file);
  const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
  const FileHandle found = handle_of(file);
  if (found.device == handle.device && found.inode == handle.inode) return file;
  if (file >= 0) close(file);
  return -1;
}

// Reserves the pages of a mapped file; without this, a full file system would raise SIGBUS at the
// first access. Asks for huge pages, which the kernel does not give to shared memory by itself:
// 60 MB of small pages exceed the TLB. Each huge page is collapsed while it holds one small page,
// so that no others have to be moved.
bool reserve(int file, std::byte* begin, std::size_t bytes) {
  const std::size_t large = bytes / kHugePage * kHugePage;
  for (std::size_t offset = 0; offset < large; offset += kHugePage) {
    if (posix_fallocate(file, static_cast<off_t>(offset), 1) != 0) return false;
  }
  if (large > 0) madvise(begin, large, kMadvCollapse);
  return bytes == 0 || posix_fallocate(file, 0, static_cast<off_t>(bytes)) == 0;
}

// Maps the file at an address aligned to huge pages.
std::byte* map(int file, std::size_t bytes) {
  // Reserves a larger address range, maps the file at the first aligned address in it, and unmaps
  // the rest.
  const std::size_t reserved = bytes + kHugePage;
  void* const range = mmap(nullptr, reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (range == MAP_FAILED) return nullptr;
  auto* const first = static_cast<std::byte*>(range);
  const std::size_t skipped = -reinterpret_cast<std::uintptr_t>(first) % kHugePage;
  std::byte* const begin = first + skipped;
  void* const memory = mmap(begin, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0);
  if (memory == MAP_FAILED) {
    munmap(range, reserved);
    return nullptr;
  }
  const std::size_t used = (bytes + kPage - 1) / kPage * kPage;
  if (skipped > 0) munmap(first, skipped);
  munmap(begin + used, reserved - skipped - used);
  if (reserve(file, begin, bytes)) return begin;
  munmap(begin, bytes);
  return nullptr;
}

// Remaps shared memory as private (copy-on-write) in a forked process, so that its writes do not
// reach the ranks.
class ForkGuard {
 public:
  ForkGuard() {
    pthread_atfork(nullptr, nullptr, [] { instance().in_child(); });
  }

  void add(std::byte* memory, std::size_t bytes, int file) {
    const std::lock_guard lock(mutex_);
    blocks_.push_back({memory, bytes, file});
  }

  void remove(std::byte* memory) {
    const std::lock_guard lock(mutex_);
    std::erase_if(blocks_, [memory](const Block& block) { return block.memory == memory; });
  }

  static ForkGuard& instance() {
    static ForkGuard* const guard = new ForkGuard;
    return *guard;
  }

 private:
  struct Block {
    std::byte* memory;
    std::size_t bytes;
    int file;
  };

  void in_child() {
    for (const Block& block : blocks_) {
      static_cast<void>(mmap(block.memory, block.bytes, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_FIXED, block.file, 0));
    }
  }

  ForkMutex mutex_;
  std::vector<Block> blocks_;
};

}  // namespace

std::shared_ptr<std::byte> map_shared_memory(MPI_Comm comm, std::size_t bytes) {
  int rank = 0;
  check_mpi(MPI_Comm_rank(comm, &rank), "MPI_Comm_rank");
  int file = rank == 0 ? create(bytes) : -1;
  std::byte* memory = rank == 0 && file >= 0 ? map(file, bytes) : nullptr;
  FileHandle handle = memory != nullptr ? handle_of(file) : FileHandle();
  // The other ranks map it after rank 0 has made the pages: if several ranks collapse huge pages at
  // once, none succeeds.
  check_mpi(MPI_Bcast(&handle, sizeof handle, MPI_BYTE, 0, comm), "MPI_Bcast");
  if (rank != 0) {
    file = open_handle(handle);
    if (file >= 0) memory = map(file, bytes);
  }
  int mapped = memory != nullptr;
  check_mpi(MPI_Allreduce(MPI_IN_PLACE, &mapped, 1, MPI_INT, MPI_MIN, comm), "MPI_Allreduce");
  std::shared_ptr<std::byte> block;
  if (memory != nullptr) {
    ForkGuard::instance().add(memory, bytes, file);
    block.reset(memory, [bytes, file](std::byte* p) {
      ForkGuard::instance().remove(p);
      munmap(p, bytes);
      close(file);
    });
  } else if (file >= 0) {
    close(file);
  }
  return mapped ? block : nullptr;
}

}  // namespace renga
