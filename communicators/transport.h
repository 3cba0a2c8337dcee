// What a kind of communicator has to provide: bytes moved between two ranks, and, where the ranks
// share memory, a board. Collectives are built on these two and know no other difference.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace renga {

class Board;

// Where a rank stands among all ranks, among those of its node, and which node that is.
struct Placement {
  int rank = 0;
  int size = 1;
  int intra_rank = 0;
  int intra_size = 1;
  int inter_rank = 0;
  int inter_size = 1;
};

// Bytes on their way. They must stay in place until test() has said true.
class Transfer {
 public:
  explicit Transfer(int peer) : peer_(peer) {}
  virtual ~Transfer() = default;
  // Whether it is over; throws what went wrong.
  virtual bool test() = 0;
  int peer() const { return peer_; }

 private:
  int peer_;
};

// The tag of the messages that collectives send; users' tags are not negative.
inline constexpr int kCollectiveTag = -1;

class Transport {
 public:
  virtual ~Transport() = default;
  virtual const Placement& placement() const = 0;
  // Both start and return at once. Messages between two ranks with one tag keep their order.
  virtual std::unique_ptr<Transfer> send(const void* data, std::int64_t bytes, int to, int tag) = 0;
  virtual std::unique_ptr<Transfer> receive(void* data, std::int64_t bytes, int from, int tag) = 0;
  // Among `members`, ranks of this transport in their new order. Called by each of them.
  virtual std::shared_ptr<Transport> split(const std::vector<int>& members) = 0;
  // Null where the ranks do not share memory.
  virtual Board* board() = 0;
  // Lets transfers advance while this rank waits for something else; throws if a rank has failed.
  virtual void progress() = 0;
  // Whether another thread may communicate at the same time.
  virtual bool concurrent() const = 0;
  // Ends every rank's part in this communicator, because this one cannot go on.
  virtual void abort(int code) = 0;
};

}  // namespace renga
