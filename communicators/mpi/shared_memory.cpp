#include "mpi/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <random>

#include "mpi/mpi_transport.h"

namespace renga {

namespace {

// Reserves the pages too: a file system without room would end the process at the first touch.
int create(const char* name, std::size_t bytes) {
  const int file = shm_open(name, O_CREAT | O_EXCL | O_RDWR, 0600);
  if (file >= 0 && posix_fallocate(file, 0, static_cast<off_t>(bytes)) != 0) {
    close(file);
    shm_unlink(name);
    return -1;
  }
  return file;
}

}  // namespace

std::shared_ptr<std::byte> shared_memory(MPI_Comm comm, std::size_t bytes) {
  int rank = 0;
  check_mpi(MPI_Comm_rank(comm, &rank), "MPI_Comm_rank");
  char name[64] = {};
  int file = -1;
  if (rank == 0) {
    std::snprintf(name, sizeof name, "/renga-%d-%08x", static_cast<int>(getpid()),
                  std::random_device{}());
    file = create(name, bytes);
  }
  check_mpi(MPI_Bcast(name, sizeof name, MPI_CHAR, 0, comm), "MPI_Bcast");
  if (rank != 0) file = shm_open(name, O_RDWR, 0600);
  void* memory = MAP_FAILED;
  if (file >= 0) {
    memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
  }
  int mapped = memory != MAP_FAILED;
  check_mpi(MPI_Allreduce(MPI_IN_PLACE, &mapped, 1, MPI_INT, MPI_MIN, comm), "MPI_Allreduce");
  // Nameless from here on: nothing stays behind, however the processes end.
  if (rank == 0 && file >= 0) shm_unlink(name);
  std::shared_ptr<std::byte> block;
  if (memory != MAP_FAILED) {
    block.reset(static_cast<std::byte*>(memory), [bytes](std::byte* p) { munmap(p, bytes); });
  }
  return mapped ? block : nullptr;
}

}  // namespace renga
