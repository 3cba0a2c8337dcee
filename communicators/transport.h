// What a kind of communicator has to provide: bytes moved between two ranks, and, where the ranks
// share memory, a board. Collectives are built on these two and know no other difference.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "collectives/placement.h"

namespace renga {

class Board;

// Bytes on their way. They must stay in place until test() has said true.
class Transfer {
 public:
  explicit Transfer(int peer) : peer_(peer) {}
  virtual ~Transfer() = default;
  // Whether it is over; throws what went wrong.
  virtual bool test() = 0;
  // Gives it up as far as that is possible. Whether its memory is free to go; asked again until so.
  // Throws nothing.
  virtual bool cancel() = 0;
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
  // That of this rank's node. Null where its ranks do not share memory, and where there are several
  // nodes that are not in rows.
  virtual Board* board() = 0;
  // Zeroed memory that all ranks of the board see, each of which calls this; null where there is no
  // room for it.
  virtual std::shared_ptr<std::byte> shared_memory(std::size_t bytes) = 0;
  // Lets transfers advance while this rank waits for something else; throws if a rank has failed.
  virtual void progress() = 0;
  // Throws if a rank is known to have failed.
  virtual void check_failure() const {}
  // Whether a rank is known to have let go of this communicator: nothing more comes from it.
  virtual bool departed(int) const { return false; }
  // The greatest tag of a message.
  virtual int max_tag() const = 0;
  // Whether another thread may communicate at the same time.
  virtual bool concurrent() const = 0;
  // Ends every rank's part in this communicator, because this one cannot go on.
  virtual void abort(int code) = 0;
};

}  // namespace renga
