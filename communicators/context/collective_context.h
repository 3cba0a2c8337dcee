// One rank's part in one collective: transport, call, and how long it may wait.
#pragma once

#include <string>
#include <vector>

#include "context/call.h"
#include "context/pending_transfers.h"
#include "transport/errors.h"
#include "transport/transport.h"

namespace renga {

struct CollectiveContext {
  Transport& transport;
  Call call;
  double timeout_seconds;      // 0: none
  bool interruptible = false;  // runs on a thread that may run Python's signal handlers
  // Transfers that could not be cancelled may still use memory of this collective.
  mutable bool memory_in_use = false;

  int rank() const { return transport.topology().rank; }
  int size() const { return transport.topology().size; }
};

// Runs pending signal handlers and throws what they raise. Set by the binding.
extern void (*check_signals)();
// Where in the user's program this thread is. Set by the binding.
extern std::string (*current_call_site)();

// "all_reduce …: rank 0 waited 5 s for rank 2"
[[noreturn]] void throw_timeout(const CollectiveContext& context, const std::vector<int>& missing,
                                const std::string& details = "");
// "all_reduce …: rank 2 has exited, rank 0 waits for it"
[[noreturn]] void throw_rank_failed(const CollectiveContext& context, int missing,
                                    const std::string& details = "");

// Waits for all transfers. Throws TimeoutError with the peers of those that are not complete, or
// RankFailed if one of them has shut down.
void wait_all(Transfers& transfers, const CollectiveContext& context);
// This calls wait_all(), too, and cancels the transfers if it throws.
void wait_all_or_cancel(Transfers& transfers, const CollectiveContext& context);

}  // namespace renga
