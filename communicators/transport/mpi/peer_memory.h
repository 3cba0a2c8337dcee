// Reading the memory of other processes of a node (process_vm_readv).
#pragma once

#include <mpi.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace renga {

// The processes of `comm`, whose ranks are on one node and all call this. None if one of them may
// not read another's memory, as in containers that forbid it.
std::vector<pid_t> readable_peers(MPI_Comm comm);

// Copies from another process. Throws RankFailed if it has ended.
void read_memory(pid_t process, const std::byte* from, std::byte* to, std::int64_t bytes);

}  // namespace renga
