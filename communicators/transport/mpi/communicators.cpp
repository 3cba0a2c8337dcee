#include "transport/mpi/communicators.h"

#include <algorithm>
#include <map>
#include <utility>

#include "transport/mpi/mpi_transport.h"

namespace renga {

namespace {

// What a rank tells the others of a communicator that it does not use any more.
struct Unused {
  std::int64_t number;      // of the split
  std::int64_t unreceived;  // MpiCommunicators::unreceived
};

// What every rank of `parent` tells, by rank.
std::vector<std::map<std::int64_t, std::int64_t>> gather_unused(MPI_Comm parent,
                                                                const std::vector<Unused>& own) {
  int size = 0;
  MPI_Comm_size(parent, &size);
  const auto ranks = static_cast<std::size_t>(size);
  const int bytes = static_cast<int>(own.size() * sizeof(Unused));
  std::vector<int> counts(ranks), begins(ranks + 1);
  check_mpi(MPI_Allgather(&bytes, 1, MPI_INT, counts.data(), 1, MPI_INT, parent), "MPI_Allgather");
  for (std::size_t r = 0; r < ranks; ++r) begins[r + 1] = begins[r] + counts[r];
  std::vector<Unused> all(static_cast<std::size_t>(begins.back()) / sizeof(Unused));
  if (!all.empty()) {
    check_mpi(MPI_Allgatherv(own.data(), bytes, MPI_BYTE, all.data(), counts.data(), begins.data(),
                             MPI_BYTE, parent),
              "MPI_Allgatherv");
  }
  std::vector<std::map<std::int64_t, std::int64_t>> told(ranks);
  auto next = all.begin();
  for (std::size_t r = 0; r < ranks; ++r) {
    for (std::size_t i = 0; i < static_cast<std::size_t>(counts[r]) / sizeof(Unused); ++i, ++next) {
      told[r][next->number] = next->unreceived;
    }
  }
  return told;
}

// Receives the shutdown notices that have not arrived yet: later ones would go to a communicator
// that gets the same number in MPI.
void receive_shutdown_notices(MpiCommunicators& communicators) {
  int rank = 0;
  MPI_Comm_rank(communicators.collective, &rank);
  for (std::size_t r = 0; r < communicators.shut_down.size(); ++r) {
    if (static_cast<int>(r) == rank || communicators.shut_down[r]) continue;
    check_mpi(MPI_Recv(nullptr, 0, MPI_BYTE, static_cast<int>(r), kShutdownTag,
                       communicators.collective, MPI_STATUS_IGNORE),
              "MPI_Recv");
  }
}

}  // namespace

MpiCommunicators::MpiCommunicators(MPI_Comm comm) {
  check_mpi(MPI_Comm_dup(comm, &user), "MPI_Comm_dup");
  check_mpi(MPI_Comm_dup(comm, &collective), "MPI_Comm_dup");
  MPI_Comm_set_errhandler(user, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(collective, MPI_ERRORS_RETURN);
  int rank = 0, size = 0;
  MPI_Comm_rank(collective, &rank);
  MPI_Comm_size(collective, &size);
  check_mpi(MPI_Comm_split_type(collective, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node),
            "MPI_Comm_split_type");
  shut_down = std::vector<std::atomic<bool>>(static_cast<std::size_t>(size));
}

void SplitCommunicators::free_unused(MPI_Comm parent) {
  ++count_;
  std::vector<Unused> own;
  for (const Split& split : splits_) {
    const MpiCommunicators& c = *split.communicators;
    if (c.is_unused && !c.is_lent) own.push_back({split.number, c.unreceived});
  }
  const auto told = gather_unused(parent, own);
  const auto is_free = [&](const Split& split) {
    std::int64_t unreceived = 0;
    for (const int r : split.members) {
      const auto& of_rank = told[static_cast<std::size_t>(r)];
      const auto found = of_rank.find(split.number);
      if (found == of_rank.end()) return false;
      unreceived += found->second;
    }
    return unreceived == 0;
  };
  std::erase_if(splits_, [&](const Split& split) {
    if (!is_free(split)) return false;
    MpiCommunicators& c = *split.communicators;
    c.splits.free_unused(c.collective);
    receive_shutdown_notices(c);
    for (MPI_Comm* const comm : {&c.user, &c.collective, &c.node}) {
      check_mpi(MPI_Comm_free(comm), "MPI_Comm_free");
    }
    return true;
  });
}

void SplitCommunicators::add(std::shared_ptr<MpiCommunicators> communicators,
                             std::vector<int> members) {
  splits_.push_back({count_, std::move(communicators), std::move(members)});
}

}  // namespace renga
