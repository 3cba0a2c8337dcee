// The beginning and the end of MPI in this process.
#pragma once

#include <mpi.h>

#include <memory>

#include "transport/mpi/mpi_transport.h"

namespace renga {

// A transport over the processes of `comm`, of the whole job for nullptr. Initializes MPI unless
// somebody has done so. `shares_memory`: whether the ranks of a node do, where they can.
std::shared_ptr<Transport> connect(const MPI_Comm* comm, bool shares_memory);

// Tells the ranks of all communicators that this process exits, and ends its thread. Called before
// the process ends, and with it, perhaps, MPI.
void shut_down();

}  // namespace renga

// This connects C++ programs, which load this library only where there is MPI
// (communicators/world.h).
extern "C" void renga_connect_to_mpi(const void* comm,
                                     std::shared_ptr<renga::Transport>& transport);
