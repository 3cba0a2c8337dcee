#include "mpi/shared_memory.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "mpi/mpi_transport.h"

namespace renga {

namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kLargePage = std::size_t{1} << 21;
// The kernel's number, which headers older than Linux 6.1 lack.
constexpr int kCollapse = 25;

// How the other ranks find the file of rank 0, which has no name: through that process.
struct Place {
  int process = 0;
  int file = -1;
  std::uint64_t device = 0;
  std::uint64_t number = 0;
};

int create(std::size_t bytes) {
  const int file = memfd_create("renga", MFD_CLOEXEC);
  if (file >= 0 && ftruncate(file, static_cast<off_t>(bytes)) != 0) {
    close(file);
    return -1;
  }
  return file;
}

Place place_of(int file) {
  struct stat status {};
  if (file < 0 || fstat(file, &status) != 0) return {};
  return {static_cast<int>(getpid()), file, status.st_dev, status.st_ino};
}

// -1 where the process cannot be looked into or is another one, as it is in another container.
int open_at(const Place& place) {
  if (place.file < 0) return -1;
  const std::string path =
      "/proc/" + std::to_string(place.process) + "/fd/" + std::to_string(place.file);
  const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
  const Place found = place_of(file);
  if (found.device == place.device && found.number == place.number) return file;
  if (file >= 0) close(file);
  return -1;
}

// Has the pages of a mapped file reserved: a file system without room would end the process at the
// first touch. They are large where the kernel can make some of those that are there: it gives none
// to shared memory by itself, and 60 MB in small ones are more than a core's tables of addresses
// hold. Each is made while one small page is there, as it would have to move the others.
bool reserve(int file, std::byte* begin, std::size_t bytes) {
  const std::size_t large = bytes / kLargePage * kLargePage;
  for (std::size_t at = 0; at < large; at += kLargePage) {
    if (posix_fallocate(file, static_cast<off_t>(at), 1) != 0) return false;
  }
  if (large > 0) madvise(begin, large, kCollapse);
  return bytes == 0 || posix_fallocate(file, 0, static_cast<off_t>(bytes)) == 0;
}

// The file's bytes, from a boundary of large pages on.
std::byte* map(int file, std::size_t bytes) {
  // A range in which such a boundary can be chosen to begin at; the rest is given back.
  const std::size_t reserved = bytes + kLargePage;
  void* const range = mmap(nullptr, reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (range == MAP_FAILED) return nullptr;
  auto* const first = static_cast<std::byte*>(range);
  const std::size_t skipped = -reinterpret_cast<std::uintptr_t>(first) % kLargePage;
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

// Gives a forked process pages of its own as soon as it writes: what it does to parameters in
// shared memory must not reach the ranks.
class ForkGuard {
 public:
  ForkGuard() {
    pthread_atfork([] { instance().mutex_.lock(); }, [] { instance().mutex_.unlock(); },
                   [] { instance().in_child(); });
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
      mmap(block.memory, block.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, block.file,
           0);
    }
    mutex_.unlock();
  }

  std::mutex mutex_;
  std::vector<Block> blocks_;
};

}  // namespace

std::shared_ptr<std::byte> shared_memory(MPI_Comm comm, std::size_t bytes) {
  int rank = 0;
  check_mpi(MPI_Comm_rank(comm, &rank), "MPI_Comm_rank");
  int file = rank == 0 ? create(bytes) : -1;
  std::byte* memory = rank == 0 && file >= 0 ? map(file, bytes) : nullptr;
  Place place = memory != nullptr ? place_of(file) : Place();
  // The others come when the pages are made: of ranks that make large ones at once, none succeeds.
  check_mpi(MPI_Bcast(&place, sizeof place, MPI_BYTE, 0, comm), "MPI_Bcast");
  if (rank != 0) {
    file = open_at(place);
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
