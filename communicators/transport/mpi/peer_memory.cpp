#include "transport/mpi/peer_memory.h"

#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <random>
#include <stdexcept>
#include <string>

#include "transport/errors.h"
#include "transport/mpi/mpi_transport.h"

namespace renga {

namespace {

// Other processes read this as a trial. Processes of another container may have a peer's number,
// but not its value.
struct Trial {
  pid_t process = 0;
  const std::uint64_t* address = nullptr;
  std::uint64_t value = 0;
};

std::uint64_t own_value() {
  std::random_device device;
  return (std::uint64_t{device()} << 32) | device();
}

// Bytes that were read, or -1.
std::int64_t try_to_read(pid_t process, const void* from, void* to, std::int64_t bytes) {
  const auto length = static_cast<std::size_t>(bytes);
  const iovec local{to, length};
  const iovec remote{const_cast<void*>(from), length};
  return process_vm_readv(process, &local, 1, &remote, 1, 0);
}

bool is_readable(const Trial& trial) {
  std::uint64_t value = 0;
  return try_to_read(trial.process, trial.address, &value, sizeof(value)) == sizeof(value) &&
         value == trial.value;
}

}  // namespace

std::vector<pid_t> readable_peers(MPI_Comm comm) {
  static const std::uint64_t value = own_value();
  int ranks = 0;
  check_mpi(MPI_Comm_size(comm, &ranks), "MPI_Comm_size");
  const Trial own{getpid(), &value, value};
  std::vector<Trial> trials(static_cast<std::size_t>(ranks));
  check_mpi(MPI_Allgather(&own, sizeof own, MPI_BYTE, trials.data(), sizeof own, MPI_BYTE, comm),
            "MPI_Allgather");
  int readable = std::ranges::all_of(trials, is_readable);
  check_mpi(MPI_Allreduce(MPI_IN_PLACE, &readable, 1, MPI_INT, MPI_MIN, comm), "MPI_Allreduce");
  std::vector<pid_t> processes;
  for (const Trial& trial : trials) {
    if (readable) processes.push_back(trial.process);
  }
  return processes;
}

void read_memory(pid_t process, const std::byte* from, std::byte* to, std::int64_t bytes) {
  while (bytes > 0) {
    const std::int64_t read = try_to_read(process, from, to, bytes);
    if (read <= 0) {
      const std::string text = std::string("reading another rank's memory: ") + strerror(errno);
      if (errno == ESRCH) throw RankFailed(text);
      throw std::runtime_error(text);
    }
    from += read;
    to += read;
    bytes -= read;
  }
}

}  // namespace renga
