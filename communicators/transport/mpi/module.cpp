// The only module linked to MPI, imported with the first communicator of processes.
#include <mpi.h>
#include <pybind11/pybind11.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "devices/gil_release.h"
#include "transport/mpi/launcher.h"
#include "transport/mpi/mpi_transport.h"

namespace py = pybind11;

namespace {

using namespace renga;

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

std::shared_ptr<Transport> connect(std::uintptr_t comm_address, bool shares_memory) {
  initialize();
  const MPI_Comm comm =
      comm_address == 0 ? MPI_COMM_WORLD : *reinterpret_cast<const MPI_Comm*>(comm_address);
  const GilRelease release;
  const auto transport = std::make_shared<MpiTransport>(comm, shares_memory);
  transports().push_back(transport);
  return transport;
}

// Before the interpreter ends, and with it, perhaps, MPI.
void shut_down() {
  if (in_forked_process()) return;
  for (const auto& transport : transports()) {
    if (const auto alive = transport.lock()) alive->send_shutdown_notice();
  }
  stop_progress_thread();
}

void write_comm(const Transport& transport, std::uintptr_t address) {
  *reinterpret_cast<MPI_Comm*>(address) = dynamic_cast<const MpiTransport&>(transport).comm();
}

}  // namespace

PYBIND11_MODULE(_communicators_mpi, m) {
  m.doc() = "Communication through MPI.";
  py::module_::import("renga._communicators");
  m.def("connect", &connect, py::arg("comm_address") = 0, py::arg("shares_memory") = true,
        "A transport over the MPI_Comm at an address; over all processes of the job for 0.");
  m.def(
      "thread_level",
      [] {
        int level = MPI_THREAD_SINGLE;
        MPI_Query_thread(&level);
        const std::map<int, const char*> names = {{MPI_THREAD_SINGLE, "MPI_THREAD_SINGLE"},
                                                  {MPI_THREAD_FUNNELED, "MPI_THREAD_FUNNELED"},
                                                  {MPI_THREAD_SERIALIZED, "MPI_THREAD_SERIALIZED"},
                                                  {MPI_THREAD_MULTIPLE, "MPI_THREAD_MULTIPLE"}};
        return names.at(level);
      },
      "The level of thread support that MPI provides.");
  m.def(
      "library",
      [] {
        char text[MPI_MAX_LIBRARY_VERSION_STRING];
        int length = 0;
        MPI_Get_library_version(text, &length);
        const std::string version(text, static_cast<std::size_t>(length));
        return version.substr(0, version.find(','));
      },
      "The MPI implementation and its version.");
  m.def("shut_down", &shut_down,
        "Tells the ranks of all communicators that this process exits, and ends its thread.");
  m.def("write_comm", &write_comm, py::arg("transport"), py::arg("address"),
        "Writes the transport's MPI_Comm to an address.");
  m.def(
      "rank",
      [] {
        int rank = 0;
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        return rank;
      },
      "This process's rank in MPI_COMM_WORLD.");
  m.def(
      "abort",
      [](int code) {
        if (in_forked_process()) _exit(code);
        MPI_Abort(MPI_COMM_WORLD, code);
      },
      py::arg("code"), "Ends every process of the job.");
}
