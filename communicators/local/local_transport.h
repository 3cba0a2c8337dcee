// Ranks that are threads of one process.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "collectives/board.h"
#include "local/mailbox.h"
#include "transport.h"

namespace renga {

// The first failure among the ranks of a process, shared by all groups that they form.
class Failure {
 public:
  // Later ones are ignored: they follow from the first.
  void set(const std::string& what);
  // Throws RankFailed once there is a failure.
  void check() const;

 private:
  std::atomic<bool> set_ = false;
  std::mutex mutex_;
  std::string text_;
};

// What the ranks of one group share.
class Hub {
 public:
  // Without a board, collectives go by messages, as between nodes.
  Hub(int size, bool with_board, std::shared_ptr<Failure> failure);

  int size() const { return static_cast<int>(mailboxes_.size()); }
  Mailbox& mailbox(int rank) { return mailboxes_[rank]; }
  std::byte* board_memory() const { return board_.get(); }
  Failure& failure() { return *failure_; }
  // The hub of the group that `members` form at their `turn`-th split; the same for each of them.
  std::shared_ptr<Hub> child(int turn, const std::vector<int>& members);

 private:
  struct Child {
    std::shared_ptr<Hub> hub;
    std::size_t to_come;
  };

  std::vector<Mailbox> mailboxes_;
  std::shared_ptr<std::byte> board_;
  std::shared_ptr<Failure> failure_;
  std::mutex mutex_;
  std::map<std::pair<int, std::vector<int>>, Child> children_;
};

class LocalTransport final : public Transport {
 public:
  LocalTransport(std::shared_ptr<Hub> hub, int rank);

  const Placement& placement() const override { return placement_; }
  std::unique_ptr<Transfer> send(const void* data, std::int64_t bytes, int to, int tag) override;
  std::unique_ptr<Transfer> receive(void* data, std::int64_t bytes, int from, int tag) override;
  std::shared_ptr<Transport> split(const std::vector<int>& members) override;
  Board* board() override { return board_.get(); }
  void progress() override { hub_->failure().check(); }
  bool concurrent() const override { return true; }
  void abort(int code) override;

 private:
  std::shared_ptr<Hub> hub_;
  Placement placement_;
  std::unique_ptr<Board> board_;
  int splits_ = 0;
};

}  // namespace renga
