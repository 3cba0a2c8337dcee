#include "mpi/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <random>

#include "mpi/mpi_transport.h"

namespace renga {

namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kLargePage = std::size_t{1} << 21;
// The kernel's number, which headers older than Linux 6.1 lack.
constexpr int kCollapse = 25;

int create(const char* name, std::size_t bytes) {
  const int file = shm_open(name, O_CREAT | O_EXCL | O_RDWR, 0600);
  if (file >= 0 && ftruncate(file, static_cast<off_t>(bytes)) != 0) {
    close(file);
    shm_unlink(name);
    return -1;
  }
  return file;
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

}  // namespace

std::shared_ptr<std::byte> shared_memory(MPI_Comm comm, std::size_t bytes) {
  int rank = 0;
  check_mpi(MPI_Comm_rank(comm, &rank), "MPI_Comm_rank");
  char name[64] = {};
  const auto open_and_map = [&](int file) {
    std::byte* const memory = file >= 0 ? map(file, bytes) : nullptr;
    if (file >= 0) close(file);
    return memory;
  };
  std::byte* memory = nullptr;
  if (rank == 0) {
    std::snprintf(name, sizeof name, "/renga-%d-%08x", static_cast<int>(getpid()),
                  std::random_device{}());
    memory = open_and_map(create(name, bytes));
  }
  // The others come when the pages are made: of ranks that make large ones at once, none succeeds.
  check_mpi(MPI_Bcast(name, sizeof name, MPI_CHAR, 0, comm), "MPI_Bcast");
  if (rank != 0) memory = open_and_map(shm_open(name, O_RDWR, 0600));
  int mapped = memory != nullptr;
  check_mpi(MPI_Allreduce(MPI_IN_PLACE, &mapped, 1, MPI_INT, MPI_MIN, comm), "MPI_Allreduce");
  // Nameless from here on: nothing stays behind, however the processes end.
  if (rank == 0) shm_unlink(name);
  std::shared_ptr<std::byte> block;
  if (memory != nullptr) {
    block.reset(memory, [bytes](std::byte* p) { munmap(p, bytes); });
  }
  return mapped ? block : nullptr;
}

}  // namespace renga
