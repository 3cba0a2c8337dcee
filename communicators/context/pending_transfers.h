// Messages in flight: polling them, and keeping the memory of those that cannot be cancelled.
#pragma once

#include <memory>
#include <vector>

#include "tensor/array.h"
#include "transport/transport.h"

namespace renga {

using Transfers = std::vector<std::unique_ptr<Transfer>>;

// Removes the completed transfers; throws the error of one that failed, and removes it too.
void erase_completed(Transfers& transfers);
// Cancels transfers. Those that cannot be cancelled are kept until they complete, together with
// `arrays`, whose memory they may read and write.
void cancel(Transfers transfers, std::vector<Array> arrays);
// Whether transfers that this thread has cancelled without their arrays may still use memory.
bool has_unowned_transfers();

// Holds references to arrays. Leaks them if it is destroyed by an exception after which transfers
// may still use their memory.
class TransferArrays {
 public:
  explicit TransferArrays(std::vector<Array> arrays);
  ~TransferArrays();
  TransferArrays(const TransferArrays&) = delete;
  TransferArrays& operator=(const TransferArrays&) = delete;

 private:
  std::vector<Array> arrays_;
  int exceptions_;  // in flight when this was made
};

}  // namespace renga
