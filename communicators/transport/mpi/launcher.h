// The process that started the ranks of this node.
#pragma once

namespace renga {

// Ends this process soon after the launcher of its job has ended. Open MPI itself may wait for a
// killed launcher forever, in MPI_Init for example. Does nothing in a process that was not launched
// as a rank.
void end_with_launcher();

}  // namespace renga
