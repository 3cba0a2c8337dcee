// Messages that nobody waits for any more, and the memory that they may still use.
#pragma once

#include <memory>
#include <vector>

#include "tensor/array.h"
#include "transport.h"

namespace renga {

using Transfers = std::vector<std::unique_ptr<Transfer>>;

// Takes out those that are over; throws what went wrong with one, without it.
void drop_finished(Transfers& transfers);
// Cancels messages. Those that cannot be cancelled are kept until they are over, and so is the
// memory of `arrays`, in which they may read and write.
void give_up(Transfers transfers, std::vector<Array> arrays);
// Whether messages that this thread has given up may still use memory that it does not keep.
bool memory_in_use();

// Keeps arrays for ever where it is destroyed by an error after which messages may still use them.
class Kept {
 public:
  explicit Kept(std::vector<Array> arrays);
  ~Kept();
  Kept(const Kept&) = delete;
  Kept& operator=(const Kept&) = delete;

 private:
  std::vector<Array> arrays_;
  int errors_;
};

}  // namespace renga
