#include "turn.h"

#include <immintrin.h>
#include <sched.h>

#include <algorithm>
#include <sstream>
#include <thread>

namespace renga {

namespace {

// About 0.1 ms, in which a rank mostly comes that is on its way: who yields to another program gets
// the core back some milliseconds later.
constexpr int kSpins = 4000;
constexpr int kSpinsBetweenLooks = 64;  // at messages, which others may wait for
constexpr int kYields = 20000;          // where nothing else wants to run, as good as spinning
constexpr std::chrono::microseconds kShortestNap{20};
constexpr std::chrono::microseconds kLongestNap{1000};
constexpr std::chrono::milliseconds kSignalInterval{50};
// What a rank sent before it left arrives within this time after its farewell.
constexpr std::chrono::milliseconds kLastMessages{500};

bool more_ranks_than_cores(const Transport& transport) {
  static const int cores = static_cast<int>(std::thread::hardware_concurrency());  // reads a file
  return transport.placement().intra_size > cores;
}

// Finding out where a call stands takes longer than a short call does, so it is done late.
std::string what_and_where(const Turn& turn) {
  Call call = turn.call;
  const bool unknown = call.site[0] == 0 && turn.interruptible && current_site != nullptr;
  return (unknown ? call.at(current_site()) : call).text_and_site();
}

}  // namespace

Patience::Patience(Transport& transport, double seconds, bool interruptible, bool drives)
    : transport_(transport), seconds_(seconds), interruptible_(interruptible), drives_(drives) {
  // Who spins where cores are short keeps the others from arriving; in the background, it takes
  // the core from its own rank, which computes meanwhile.
  if (more_ranks_than_cores(transport)) rounds_ = kSpins;
  if (!interruptible) rounds_ = kSpins + kYields;
}

bool Patience::pause() {
  ++rounds_;
  if (rounds_ < kSpins) {
    _mm_pause();
    if (rounds_ % kSpinsBetweenLooks == 0) transport_.progress();
    return true;
  }
  transport_.progress();
  if (rounds_ < kSpins + kYields) {
    sched_yield();
    if (rounds_ % 64 != 0) return true;
  } else {
    // Each nap costs two changes of thread, so they get longer soon.
    const Clock::duration doubled = kShortestNap * (1 << std::min(rounds_ - kSpins - kYields, 10));
    const Clock::duration nap = drives_ ? (Clock::now() - start_) / 64 : doubled;
    std::this_thread::sleep_for(std::clamp<Clock::duration>(nap, kShortestNap, kLongestNap));
  }
  return lasts();
}

bool Patience::lasts() {
  const auto now = Clock::now();
  if (interruptible_ && check_signals != nullptr && now - signals_checked_ > kSignalInterval) {
    signals_checked_ = now;
    check_signals();
  }
  return seconds_ <= 0 || now - start_ < std::chrono::duration<double>(seconds_);
}

bool Patience::is_vain(int peer) {
  if (!transport_.departed(peer)) return false;
  const auto now = Clock::now();
  if (!departure_seen_) departure_seen_ = now;
  return now - *departure_seen_ > kLastMessages;
}

void give_up(const Turn& turn, int missing, const std::string& more) {
  std::ostringstream text;
  text << what_and_where(turn) << ": rank " << missing << " has left, rank " << turn.rank()
       << " waits for it" << more;
  throw RankFailed(text.str());
}

void time_out(const Turn& turn, const std::vector<int>& missing, const std::string& more) {
  std::ostringstream text;
  text << what_and_where(turn) << ": rank " << turn.rank() << " waited " << turn.seconds
       << " s for rank";
  if (missing.size() > 1) text << 's';
  for (std::size_t i = 0; i < missing.size(); ++i) text << (i ? ", " : " ") << missing[i];
  text << more;
  throw TimeOut(text.str());
}

void finish(Transfers& transfers, const Turn& turn) {
  try {
    wait_for(transfers, turn);
  } catch (...) {
    give_up(std::move(transfers), {});
    throw;
  }
}

void wait_for(Transfers& transfers, const Turn& turn) {
  Patience patience(turn, true);
  while (true) {
    drop_finished(transfers);
    if (transfers.empty()) return;
    if (!patience.pause()) break;
    const int peer = transfers.front()->peer();
    if (patience.is_vain(peer)) give_up(turn, peer);
  }
  std::vector<int> missing;
  for (const auto& transfer : transfers) missing.push_back(transfer->peer());
  std::ranges::sort(missing);
  missing.erase(std::unique(missing.begin(), missing.end()), missing.end());
  time_out(turn, missing);
}

}  // namespace renga
