#include "context/collective_context.h"

#include <algorithm>
#include <sstream>

#include "context/backoff.h"

namespace renga {

void (*check_signals)() = nullptr;
std::string (*current_call_site)() = nullptr;

namespace {

// Finding the call site takes longer than a short collective, so it is done only for errors.
std::string call_and_site(const CollectiveContext& context) {
  Call call = context.call;
  const bool unknown = call.site[0] == 0 && context.interruptible && current_call_site != nullptr;
  return (unknown ? call.at(current_call_site()) : call).text_and_site();
}

}  // namespace

void throw_rank_failed(const CollectiveContext& context, int missing, const std::string& details) {
  std::ostringstream text;
  text << call_and_site(context) << ": rank " << missing << " has exited, rank " << context.rank()
       << " waits for it" << details;
  throw RankFailed(text.str());
}

void throw_timeout(const CollectiveContext& context, const std::vector<int>& missing,
                   const std::string& details) {
  std::ostringstream text;
  text << call_and_site(context) << ": rank " << context.rank() << " waited "
       << context.timeout_seconds << " s for rank";
  if (missing.size() > 1) text << 's';
  for (std::size_t i = 0; i < missing.size(); ++i) text << (i ? ", " : " ") << missing[i];
  text << details;
  throw TimeoutError(text.str());
}

void wait_all_or_cancel(Transfers& transfers, const CollectiveContext& context) {
  try {
    wait_all(transfers, context);
  } catch (...) {
    if (!cancel(std::move(transfers), {})) context.memory_in_use = true;
    throw;
  }
}

void wait_all(Transfers& transfers, const CollectiveContext& context) {
  Backoff backoff(context, true);
  while (true) {
    erase_completed(transfers);
    if (transfers.empty()) return;
    if (!backoff.wait()) break;
    const int peer = transfers.front()->peer();
    if (backoff.has_lost(peer)) throw_rank_failed(context, peer);
  }
  std::vector<int> missing;
  for (const auto& transfer : transfers) missing.push_back(transfer->peer());
  std::ranges::sort(missing);
  missing.erase(std::unique(missing.begin(), missing.end()), missing.end());
  throw_timeout(context, missing);
}

}  // namespace renga
