// Ranks that are threads of one process.
#pragma once

#include <atomic>
#include <limits>
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
  // Ranks with the same number in `nodes` have a board together, or, without boards, send messages
  // only.
  Hub(std::vector<int> nodes, bool with_boards, std::shared_ptr<Failure> failure);

  int size() const { return static_cast<int>(mailboxes_.size()); }
  Mailbox& mailbox(int rank) { return mailboxes_[rank]; }
  bool with_boards() const { return with_boards_; }
  const std::vector<int>& nodes() const { return nodes_; }
  // Zeroed memory of a node, the same for each of its ranks that asks for the `turn`-th time.
  std::shared_ptr<std::byte> memory(int turn, const Placement& asker, std::size_t bytes);
  Failure& failure() { return *failure_; }
  // The hub of the group that `members` form at their `turn`-th split; the same for each of them.
  std::shared_ptr<Hub> child(int turn, const std::vector<int>& members);

 private:
  // What several ranks ask for and the first of them makes.
  template <class T>
  struct Shared {
    std::shared_ptr<T> made;
    int to_come;
  };
  // `to_come` ranks ask for the same; make() is called for the first.
  template <class Map, class Make>
  static auto take(Map& map, const typename Map::key_type& key, int to_come, const Make& make);

  std::vector<int> nodes_;
  std::vector<Mailbox> mailboxes_;
  bool with_boards_;
  std::shared_ptr<Failure> failure_;
  std::mutex mutex_;
  std::map<std::pair<int, std::vector<int>>, Shared<Hub>> children_;
  std::map<std::pair<int, int>, Shared<std::byte>> memories_;
};

class LocalTransport final : public Transport {
 public:
  LocalTransport(std::shared_ptr<Hub> hub, int rank);

  const Placement& placement() const override { return placement_; }
  std::unique_ptr<Transfer> send(const void* data, std::int64_t bytes, int to, int tag) override;
  std::unique_ptr<Transfer> receive(void* data, std::int64_t bytes, int from, int tag) override;
  std::shared_ptr<Transport> split(const std::vector<int>& members) override;
  Board* board() override { return board_.get(); }
  std::shared_ptr<std::byte> shared_memory(std::size_t bytes) override;
  void progress() override { check_failure(); }
  void check_failure() const override { hub_->failure().check(); }
  int max_tag() const override { return std::numeric_limits<int>::max(); }
  bool concurrent() const override { return true; }
  void abort(int code) override;

 private:
  std::shared_ptr<Hub> hub_;
  Placement placement_;
  std::unique_ptr<Board> board_;
  std::map<std::vector<int>, int> splits_;
  int memories_ = 0;
};

}  // namespace renga
