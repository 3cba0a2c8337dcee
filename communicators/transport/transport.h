// The interface that each kind of communicator implements: messages of bytes between two ranks and,
// where ranks of one node can map the same memory, its allocation. Collectives are built on these.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "transport/topology.h"
#include "transport/traffic.h"

namespace renga {

class ProgressThread;

// A message in flight. Its memory must stay valid until test() has returned true.
class Transfer {
 public:
  explicit Transfer(int peer) : peer_(peer) {}
  virtual ~Transfer() = default;
  // Whether it is complete; throws its error.
  virtual bool test() = 0;
  // Cancels it if possible. True once its memory may be freed; call again until then. Never throws.
  virtual bool cancel() = 0;
  int peer() const { return peer_; }

 private:
  int peer_;
};

// The error of a message that is dropped because its receiver does not accept it.
inline constexpr const char* kNotAccepted = "recv: the header is not the expected one";
// The tag of the messages that collectives send; users' tags are not negative.
inline constexpr int kCollectiveTag = -1;

// Where a message that has not been received comes from.
struct Envelope {
  int source;
  int tag;
};

class Transport {
 public:
  virtual ~Transport() = default;
  virtual const Topology& topology() const = 0;
  // Whether a message may be written to its memory. Called once those before it have been received.
  using Accepts = std::function<bool()>;
  // Both start a message and return at once. Messages between two ranks with one tag keep their
  // order. If `accepts` is given and returns false, the message is dropped, and the transfer fails.
  std::unique_ptr<Transfer> send(const void* data, std::int64_t bytes, int to, int tag) {
    if (tag == kCollectiveTag) collective_traffic_.add(bytes);
    return start_send(data, bytes, to, tag);
  }
  std::unique_ptr<Transfer> receive(void* data, std::int64_t bytes, int from, int tag,
                                    Accepts accepts = {}) {
    return start_receive(data, bytes, from, tag, std::move(accepts));
  }
  // A message from `from` with `tag`, or from any rank and with any tag of users, that has arrived
  // and that no receive has been posted for. The next receive of its source and tag gets it.
  virtual std::optional<Envelope> probe(std::optional<int> from, std::optional<int> tag) = 0;
  // Returns what collectives have sent.
  const SentMessages& collective_traffic() const { return collective_traffic_; }
  // Frees what splits have left that none of their ranks uses. All ranks call it before a split.
  virtual void free_unused_splits() {}
  // A transport over `members`, ranks of this one in their new order. Each of them calls it.
  virtual std::shared_ptr<Transport> split(const std::vector<int>& members) = 0;
  // Zeroed memory that all ranks of this node map; each of them calls it in the same order. Null on
  // all of them, on all nodes, where ranks do not share memory or there is too little space.
  virtual std::shared_ptr<std::byte> allocate_shared(std::size_t bytes) = 0;
  // Whether all ranks of a node may read each other's memory.
  virtual bool can_read_peers() const { return false; }
  // Copies from the memory of `rank`, of this node.
  virtual void read_peer(int /*rank*/, const std::byte* /*from*/, std::byte* /*to*/,
                         std::int64_t /*bytes*/) {}
  // Lets transfers advance while this rank waits for something else; throws if a rank has failed.
  virtual void progress() = 0;
  // Throws if a rank is known to have failed.
  virtual void check_failure() const {}
  // Whether `rank` has sent a shutdown notice: no new message comes from it.
  virtual bool has_shut_down(int /*rank*/) const { return false; }
  // The greatest tag of a message.
  virtual int max_tag() const = 0;
  // Whether another thread may communicate at the same time.
  virtual bool concurrent() const = 0;
  // Advances messages outside of any wait. Null where they advance by themselves, or
  // where only one thread may communicate.
  virtual ProgressThread* progress_thread() const { return nullptr; }
  // Ends all ranks, because this one cannot go on.
  virtual void abort(int code) = 0;

 private:
  virtual std::unique_ptr<Transfer> start_send(const void* data, std::int64_t bytes, int to,
                                               int tag) = 0;
  virtual std::unique_ptr<Transfer> start_receive(void* data, std::int64_t bytes, int from, int tag,
                                                  Accepts accepts) = 0;

  SentMessages collective_traffic_;
};

}  // namespace renga
