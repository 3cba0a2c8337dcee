// A block of memory that the processes of one node map together.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <memory>

namespace renga {

// Zeroed, the same block on every rank of `comm`, all of which call this and share a node. Null on
// every rank where one of them finds no room. It goes when the last rank lets go of it.
std::shared_ptr<std::byte> shared_memory(MPI_Comm comm, std::size_t bytes);

}  // namespace renga
