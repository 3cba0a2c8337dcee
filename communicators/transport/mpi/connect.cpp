#include "transport/mpi/connect.h"

#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <numeric>
#include <utility>
#include <vector>

#include "devices/gil_release.h"
#include "transport/mpi/launcher.h"

namespace renga {
namespace {

// Runs after the interpreter has been finalized. A rank that exits with an error must not wait in
// MPI_Finalize for ranks that wait for it.
void on_process_exit(int status, void*) {
  if (mpi_is_finalized()) return;
  if (status == 0) {
    MPI_Finalize();
  } else if (status == 128 + SIGTERM) {
    _exit(status);  // mpiexec sends SIGTERM to all ranks
  } else {
    MPI_Abort(MPI_COMM_WORLD, status);
  }
}

// MPI is finalized by whoever initialized it, which may be mpi4py.
void initialize() {
  [[maybe_unused]] static const bool watches = (end_with_launcher(), true);
  int initialized = 0;
  MPI_Initialized(&initialized);
  if (initialized) return;
  int level = MPI_THREAD_SINGLE;
  check_mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &level), "MPI_Init_thread");
  on_exit(on_process_exit, nullptr);
}

// All that have been created.
std::vector<std::weak_ptr<MpiTransport>>& transports() {
  static std::vector<std::weak_ptr<MpiTransport>> all;
  return all;
}

// Those of all processes of the job.
SplitCommunicators& of_world() {
  static SplitCommunicators all;
  return all;
}

}  // namespace

std::shared_ptr<Transport> connect(const MPI_Comm* comm, bool shares_memory) {
  initialize();
  const GilRelease release;
  if (comm == nullptr) of_world().free_unused(MPI_COMM_WORLD);
  auto transport =
      std::make_shared<MpiTransport>(comm == nullptr ? MPI_COMM_WORLD : *comm, shares_memory);
  if (comm == nullptr) {
    std::vector<int> ranks(static_cast<std::size_t>(transport->topology().size));
    std::iota(ranks.begin(), ranks.end(), 0);
    of_world().add(transport->communicators(), std::move(ranks));
  }
  transports().push_back(transport);
  return transport;
}

void shut_down() {
  if (in_forked_process()) return;
  for (const auto& transport : transports()) {
    if (const auto alive = transport.lock()) alive->send_shutdown_notice();
  }
  stop_progress_thread();
}

}  // namespace renga

extern "C" void renga_connect_to_mpi(const void* comm,
                                     std::shared_ptr<renga::Transport>& transport) {
  transport = renga::connect(static_cast<const MPI_Comm*>(comm), true);
  [[maybe_unused]] static const int registered = std::atexit(renga::shut_down);
}
