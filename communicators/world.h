// Communicators of C++ programs.
#pragma once

#include <memory>
#include <vector>

#include "communicator.h"

namespace renga::communicators {

// All processes of the MPI job that mpiexec or srun has started; one process alone otherwise.
// `mpi_comm` is the address of an MPI_Comm whose processes form the group instead. MPI is
// initialized unless the program has done so. RENGA_TIMEOUT is the time-out of waits in seconds.
std::shared_ptr<Communicator> world(const void* mpi_comm = nullptr);

// The arrays of all ranks are replaced by their sum or another reduction. Waits.
void all_reduce(Communicator& comm, const std::vector<Array>& xs, ReduceOp op = ReduceOp::sum);
// The arrays of `root` replace those of the other ranks.
void broadcast(Communicator& comm, const std::vector<Array>& xs, int root = 0);

}  // namespace renga::communicators
