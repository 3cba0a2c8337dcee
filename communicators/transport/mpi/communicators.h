// The MPI communicators of a transport. MPI_Comm_free is collective, but the ranks destroy their
// transports when they like, or never. So a communicator outlives its transport until a later split
// of the one that it was split from: there its ranks learn from each other whether all of them are
// through with it, and free it together.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

namespace renga {

// The tag of shutdown notices on the communicator of collectives.
inline constexpr int kShutdownTag = 1;

struct MpiCommunicators;

// Communicators that have been split from one.
class SplitCommunicators {
 public:
  // Frees those that none of their ranks uses. All ranks of `parent` call it before each split,
  // and before they free it.
  void free_unused(MPI_Comm parent);
  // Adds the present split. `members`: its ranks in the parent.
  void add(std::shared_ptr<MpiCommunicators> communicators, std::vector<int> members);

 private:
  struct Split {
    std::int64_t number;
    std::shared_ptr<MpiCommunicators> communicators;
    std::vector<int> members;
  };
  std::int64_t count_ = 0;  // splits so far, the same on all ranks
  std::vector<Split> splits_;
};

// What a transport has from MPI.
struct MpiCommunicators {
  // Duplicates `comm`, all of whose ranks call this.
  explicit MpiCommunicators(MPI_Comm comm);
  MpiCommunicators(const MpiCommunicators&) = delete;
  MpiCommunicators& operator=(const MpiCommunicators&) = delete;

  MPI_Comm user = MPI_COMM_NULL;        // messages of users
  MPI_Comm collective = MPI_COMM_NULL;  // messages of collectives
  MPI_Comm node = MPI_COMM_NULL;        // the ranks of this node
  // Messages on both that this rank has sent, less those that it has received. The sum over the
  // ranks is zero once none is on its way.
  std::atomic<std::int64_t> unreceived = 0;
  std::atomic<bool> is_unused = false;       // the transport is destroyed
  std::atomic<bool> is_lent = false;         // a user has got `user` and may keep it
  std::vector<std::atomic<bool>> shut_down;  // by rank; from whom a shutdown notice has arrived
  SplitCommunicators splits;
};

}  // namespace renga
