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
// Cancels transfers. Transfers that cannot be cancelled are kept until they complete, together with
// `arrays`, whose memory they may read and write. Returns whether all were cancelled.
bool cancel(Transfers transfers, std::vector<Array> arrays);

}  // namespace renga
