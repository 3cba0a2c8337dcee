#include "world.h"

#include <dlfcn.h>

#include <cstdlib>
#include <string>

#include "transport/local/local_transport.h"

namespace renga::communicators {
namespace {

bool is_in_mpi_job() {
  for (const char* const name : {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK"}) {
    if (std::getenv(name) != nullptr) return true;
  }
  return false;
}

std::shared_ptr<Transport> mpi_transport(const void* comm) {
  void* const library = dlopen("librenga_mpi.so", RTLD_NOW | RTLD_GLOBAL);
  require<std::runtime_error>(library != nullptr,
                              "world: expected a build of renga with MPI and an MPI library: ",
                              library == nullptr ? dlerror() : "");
  using Connect = void(const void*, std::shared_ptr<Transport>&);
  std::shared_ptr<Transport> transport;
  reinterpret_cast<Connect*>(dlsym(library, "renga_connect_to_mpi"))(comm, transport);
  return transport;
}

double timeout_seconds() {
  const char* const text = std::getenv("RENGA_TIMEOUT");
  if (text == nullptr) return 1800;
  char* end = nullptr;
  const double seconds = std::strtod(text, &end);
  require<std::invalid_argument>(end != text && *end == '\0' && seconds >= 0,
                                 "RENGA_TIMEOUT: expected seconds, got '", text, "'");
  return seconds;
}

}  // namespace

std::shared_ptr<Communicator> world(const void* mpi_comm) {
  std::shared_ptr<Transport> transport;
  if (mpi_comm != nullptr || is_in_mpi_job()) {
    transport = mpi_transport(mpi_comm);
  } else {
    const std::vector<int> nodes{0};
    transport = std::make_shared<LocalTransport>(
        std::make_shared<LocalGroup>(nodes, true, std::make_shared<Failure>()), 0);
  }
  const char* const debug = std::getenv("RENGA_DEBUG_COLLECTIVES");
  const bool records = debug != nullptr && *debug != '\0' && std::string(debug) != "0";
  return std::make_shared<Communicator>(std::move(transport), timeout_seconds(), records);
}

void all_reduce(Communicator& comm, const std::vector<Array>& xs, ReduceOp op) {
  comm.call(collective_named("all_reduce"), "all_reduce", {xs, xs, op}, {});
}

void broadcast(Communicator& comm, const std::vector<Array>& xs, int root) {
  for (const Array& x : xs) {
    Arguments arguments{{}, {}};
    (comm.rank() == root ? arguments.xs : arguments.ys).push_back(x);
    arguments.root = root;
    comm.call(collective_named("broadcast"), "broadcast", std::move(arguments), {});
  }
}

}  // namespace renga::communicators
