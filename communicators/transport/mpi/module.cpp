// The only module linked to MPI, imported with the first communicator of processes.
#include <mpi.h>
#include <pybind11/pybind11.h>
#include <unistd.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "transport/mpi/connect.h"

namespace py = pybind11;

namespace {

using namespace renga;

std::shared_ptr<Transport> connect_to(std::uintptr_t comm_address, bool shares_memory) {
  return connect(reinterpret_cast<const MPI_Comm*>(comm_address), shares_memory);
}

void write_comm(const Transport& transport, std::uintptr_t address) {
  *reinterpret_cast<MPI_Comm*>(address) = dynamic_cast<const MpiTransport&>(transport).lent_comm();
}

}  // namespace

PYBIND11_MODULE(_communicators_mpi, m) {
  m.doc() = "Communication through MPI.";
  py::module_::import("renga._communicators");
  m.def("connect", &connect_to, py::arg("comm_address") = 0, py::arg("shares_memory") = true,
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
