// The only code that is linked to MPI, loaded when somebody asks for an mpi communicator.
#include <mpi.h>
#include <pybind11/pybind11.h>
#include <stdlib.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "mpi/launcher.h"
#include "mpi/mpi_transport.h"

namespace py = pybind11;

namespace {

using namespace renga;

// Runs after the interpreter is gone. A rank that leaves with an error must not wait in
// MPI_Finalize for ranks that are waiting for it.
void leave(int status, void*) {
  if (mpi_is_over()) return;
  if (status == 0) {
    MPI_Finalize();
  } else if (status == 128 + SIGTERM) {
    _exit(status);  // told to end, as the others are; mpiexec knows
  } else {
    MPI_Abort(MPI_COMM_WORLD, status);
  }
}

// Whoever initialises MPI also ends it: where mpi4py came first, that is mpi4py.
void initialize() {
  int initialized = 0;
  MPI_Initialized(&initialized);
  if (initialized) return;
  end_with_launcher();
  int level = MPI_THREAD_SINGLE;
  check_mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &level), "MPI_Init_thread");
  on_exit(leave, nullptr);
}

// Of all communicators there have been.
std::vector<std::weak_ptr<MpiTransport>>& transports() {
  static std::vector<std::weak_ptr<MpiTransport>> all;
  return all;
}

std::shared_ptr<Transport> connect(std::uintptr_t comm_address, const std::string& boards) {
  static const std::map<std::string, Boards> words = {
      {"none", Boards::none}, {"one_node", Boards::one_node}, {"each_node", Boards::each_node}};
  initialize();
  const MPI_Comm comm =
      comm_address == 0 ? MPI_COMM_WORLD : *reinterpret_cast<const MPI_Comm*>(comm_address);
  const py::gil_scoped_release lend;
  const auto transport = std::make_shared<MpiTransport>(comm, words.at(boards));
  transports().push_back(transport);
  return transport;
}

void say_farewell() {
  if (in_forked_process()) return;
  for (const auto& transport : transports()) {
    if (const auto alive = transport.lock()) alive->say_farewell();
  }
}

void write_comm(const Transport& transport, std::uintptr_t address) {
  *reinterpret_cast<MPI_Comm*>(address) = dynamic_cast<const MpiTransport&>(transport).comm();
}

}  // namespace

PYBIND11_MODULE(_communicators_mpi, m) {
  m.doc() = "Communication through MPI.";
  py::module_::import("renga._communicators");
  m.def("connect", &connect, py::arg("comm_address") = 0, py::arg("boards") = "each_node",
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
      "What MPI allows threads to do.");
  m.def(
      "library",
      [] {
        char text[MPI_MAX_LIBRARY_VERSION_STRING];
        int length = 0;
        MPI_Get_library_version(text, &length);
        const std::string whole(text, static_cast<std::size_t>(length));
        return whole.substr(0, whole.find(','));
      },
      "The MPI there is, and its version.");
  m.def("say_farewell", &say_farewell, "Tells the others that this process is about to leave.");
  m.def("write_comm", &write_comm, py::arg("transport"), py::arg("address"),
        "Writes the transport's MPI_Comm to an address.");
  m.def(
      "rank",
      [] {
        int rank = 0;
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        return rank;
      },
      "This process's number in the job.");
  m.def(
      "abort",
      [](int code) {
        if (in_forked_process()) _exit(code);
        MPI_Abort(MPI_COMM_WORLD, code);
      },
      py::arg("code"), "Ends every process of the job.");
}
