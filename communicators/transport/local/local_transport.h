// Ranks that are threads of one process.
#pragma once

#include <atomic>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "transport/local/mailbox.h"
#include "transport/transport.h"

namespace renga {

// The first failure among the ranks of a process, shared by all groups that they form.
class Failure {
 public:
  // Later failures are ignored: they follow from the first.
  void set(const std::string& message);
  // Throws RankFailed once there is a failure.
  void check() const;

 private:
  std::atomic<bool> set_ = false;
  std::mutex mutex_;
  std::string message_;
};

// The state that the ranks of one group share.
class LocalGroup {
 public:
  // Ranks with the same number in `nodes` are on one node. They share memory if `shared_memory` is
  // true and only exchange messages otherwise.
  LocalGroup(std::vector<int> nodes, bool shared_memory, std::shared_ptr<Failure> failure);

  int size() const { return static_cast<int>(mailboxes_.size()); }
  Mailbox& mailbox(int rank) { return mailboxes_[static_cast<std::size_t>(rank)]; }
  bool shares_memory() const { return shared_memory_; }
  const std::vector<int>& nodes() const { return nodes_; }
  Failure& failure() { return *failure_; }
  // The `index`-th block of zeroed memory of the caller's node, the same for each of its ranks.
  std::shared_ptr<std::byte> allocate(int index, const Topology& caller, std::size_t bytes);
  // The group of the `index`-th split into `members`, the same for each of them.
  std::shared_ptr<LocalGroup> split(int index, const std::vector<int>& members);

 private:
  // An object that the first of several ranks creates and each of them gets once.
  template <class T>
  struct Shared {
    std::shared_ptr<T> value;
    int remaining;  // ranks that have not got it yet
  };
  // The object at `key`, of which `ranks` ranks each take one reference; create() makes it.
  template <class Map, class Create>
  static auto take_shared(Map& map, const typename Map::key_type& key, int ranks,
                          const Create& create);

  std::vector<int> nodes_;
  std::vector<Mailbox> mailboxes_;
  bool shared_memory_;
  std::shared_ptr<Failure> failure_;
  std::mutex mutex_;
  std::map<std::pair<int, std::vector<int>>, Shared<LocalGroup>> subgroups_;
  std::map<std::pair<int, int>, Shared<std::byte>> blocks_;
};

class LocalTransport final : public Transport {
 public:
  LocalTransport(std::shared_ptr<LocalGroup> group, int rank);

  const Topology& topology() const override { return topology_; }
  std::shared_ptr<Transport> split(const std::vector<int>& members) override;
  std::shared_ptr<std::byte> allocate_shared(std::size_t bytes) override;
  bool can_read_peers() const override { return group_->shares_memory(); }
  void read_peer(int rank, const std::byte* from, std::byte* to, std::int64_t bytes) override;
  std::optional<Envelope> probe(std::optional<int> from, std::optional<int> tag) override;
  void progress() override { check_failure(); }
  void check_failure() const override { group_->failure().check(); }
  int max_tag() const override { return std::numeric_limits<int>::max(); }
  bool concurrent() const override { return true; }
  void abort(int code) override;

 private:
  std::unique_ptr<Transfer> start_send(const void* data, std::int64_t bytes, int to,
                                       int tag) override;
  std::unique_ptr<Transfer> start_receive(void* data, std::int64_t bytes, int from, int tag,
                                          Accepts accepts) override;

  std::shared_ptr<LocalGroup> group_;
  Topology topology_;
  std::map<std::vector<int>, int> splits_;  // number of splits into each list of members
  int allocations_ = 0;
};

}  // namespace renga
