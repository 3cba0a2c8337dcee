// Ranks that are processes of one MPI job.
#pragma once

#include <mpi.h>

#include <memory>
#include <vector>

#include "collectives/board.h"
#include "transport.h"

namespace renga {

class MpiTransport final : public Transport {
 public:
  // Works on copies of `comm`, whose ranks all call this. The board, for ranks that share a node,
  // is left out where it is not wanted or where there is no room for it.
  MpiTransport(MPI_Comm comm, bool with_board);

  MPI_Comm comm() const { return users_; }

  const Placement& placement() const override { return placement_; }
  std::unique_ptr<Transfer> send(const void* data, std::int64_t bytes, int to, int tag) override;
  std::unique_ptr<Transfer> receive(void* data, std::int64_t bytes, int from, int tag) override;
  std::shared_ptr<Transport> split(const std::vector<int>& members) override;
  Board* board() override { return board_.get(); }
  void progress() override;
  bool concurrent() const override;
  void abort(int code) override;

 private:
  MPI_Comm comm_for(int tag) const { return tag == kCollectiveTag ? own_ : users_; }

  bool with_board_;
  MPI_Comm users_ = MPI_COMM_NULL;
  MPI_Comm own_ = MPI_COMM_NULL;  // apart, so that no user's tag meets a collective's
  Placement placement_;
  std::unique_ptr<Board> board_;
};

// Throws std::runtime_error with MPI's own words unless `code` is success.
void check_mpi(int code, const char* call);

}  // namespace renga
