// Memory that the processes of one node map together, in an anonymous file (memfd).
#pragma once

#include <mpi.h>

#include <cstddef>
#include <memory>

namespace renga {

// Zeroed memory, the same on every rank of `comm`, whose ranks are on one node and all call this.
// Null on every rank if one of them cannot map it. It is freed when the last rank releases it.
std::shared_ptr<std::byte> map_shared_memory(MPI_Comm comm, std::size_t bytes);

}  // namespace renga
