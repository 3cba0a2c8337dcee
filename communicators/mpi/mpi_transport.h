// Ranks that are processes of one MPI job.
#pragma once

#include <mpi.h>

#include <atomic>
#include <memory>
#include <vector>

#include "collectives/board.h"
#include "mpi/matched_receives.h"
#include "transport.h"

namespace renga {

// MPI counts in int; so one message may be several of at most this many bytes.
inline constexpr std::int64_t kLongestMessage = std::int64_t{1} << 30;

// Which ranks share memory: none, all of them where they are on one node, or those of each node.
enum class Boards { none, one_node, each_node };

class MpiTransport final : public Transport {
 public:
  // Works on copies of `comm`, whose ranks all call this. There is no board where there is no room
  // for it.
  MpiTransport(MPI_Comm comm, Boards boards);
  ~MpiTransport() override;

  MPI_Comm comm() const { return users_; }

  const Placement& placement() const override { return placement_; }
  std::unique_ptr<Transfer> send(const void* data, std::int64_t bytes, int to, int tag) override;
  std::unique_ptr<Transfer> receive(void* data, std::int64_t bytes, int from, int tag) override;
  std::shared_ptr<Transport> split(const std::vector<int>& members) override;
  Board* board() override { return board_.get(); }
  std::shared_ptr<std::byte> shared_memory(std::size_t bytes) override;
  void progress() override;
  int max_tag() const override;
  bool concurrent() const override;
  bool departed(int rank) const override { return departed_[static_cast<std::size_t>(rank)]; }
  void abort(int code) override;

  // Tells the other ranks that nothing more will come from this one.
  void say_farewell();

 private:
  MPI_Comm comm_for(int tag) const { return tag == kCollectiveTag ? own_ : users_; }

  Boards boards_;
  MPI_Comm users_ = MPI_COMM_NULL;
  MPI_Comm own_ = MPI_COMM_NULL;  // apart, so that no user's tag meets a collective's
  MPI_Comm node_ = MPI_COMM_NULL;
  std::unique_ptr<MatchedReceives> received_;
  Placement placement_;
  std::unique_ptr<Board> board_;
  std::vector<std::atomic<bool>> departed_;
  bool said_farewell_ = false;
};

// Whether this process has been forked from one of the job: MPI must not be called in it.
bool in_forked_process();

// Whether MPI must not be called any more.
bool mpi_is_over();

// Throws std::runtime_error with MPI's own words unless `code` is success.
void check_mpi(int code, const char* call);

}  // namespace renga
