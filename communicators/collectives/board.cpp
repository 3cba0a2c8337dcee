#include "collectives/board.h"

#include <immintrin.h>

#include <cstring>
#include <sstream>

#include "devices/gil_release.h"

namespace renga {

namespace {

constexpr std::size_t kPage = 4096;
// About 2 µs, less than it takes to lend the interpreter and get it back.
constexpr int kShortSpins = 64;

std::size_t slots_bytes(int size, std::size_t slot) {
  return (size * slot + kPage - 1) / kPage * kPage;
}

}  // namespace

void Board::SharedCall::store(const Call& call) {
  const auto* const from = reinterpret_cast<const std::byte*>(&call);
  for (std::size_t i = 0; i < std::size(words_); ++i) {
    std::uint64_t word;
    std::memcpy(&word, from + i * sizeof(word), sizeof(word));
    words_[i].store(word, std::memory_order_relaxed);
  }
}

Call Board::SharedCall::load() const {
  Call call;
  auto* const to = reinterpret_cast<std::byte*>(&call);
  for (std::size_t i = 0; i < std::size(words_); ++i) {
    const std::uint64_t word = words_[i].load(std::memory_order_relaxed);
    std::memcpy(to + i * sizeof(word), &word, sizeof(word));
  }
  return call;
}

std::size_t Board::bytes(int size) {
  return slots_bytes(size, sizeof(Slot)) + static_cast<std::size_t>(2 * size * kSegment);
}

Board::Board(std::byte* memory, int place, int size, int first, std::shared_ptr<void> owner)
    : memory_(memory),
      place_(place),
      size_(size),
      first_(first),
      owner_(std::move(owner)),
      operands_(static_cast<std::size_t>(size)) {}

std::byte* Board::segment(int place, int half) const {
  return memory_ + slots_bytes(size_, sizeof(Slot)) + (2 * place + half) * kSegment;
}

void Board::meet(const Turn& turn) {
  slot(place_).steps.store(++steps_, std::memory_order_release);
  if (!come_at_once()) wait_for_all(turn);
  if (announced_) compare_calls();
}

bool Board::come_at_once() const {
  int spins = 0;
  for (int r = 0; r < size_; ++r) {
    while (slot(r).steps.load(std::memory_order_acquire) < steps_) {
      if (++spins > kShortSpins) return false;
      _mm_pause();
    }
  }
  return true;
}

void Board::wait_for_all(const Turn& turn) {
  const GilRelease lend;
  Patience patience(turn);
  for (int r = 0; r < size_; ++r) {
    while (slot(r).steps.load(std::memory_order_acquire) < steps_) {
      if (!patience.pause()) nobody_came(turn);
      if (patience.is_vain(first_ + r)) give_up(turn, first_ + r, last_calls(turn));
    }
  }
}

std::vector<int> Board::missing() const {
  std::vector<int> places;
  for (int r = 0; r < size_; ++r) {
    if (slot(r).steps.load(std::memory_order_acquire) < steps_) places.push_back(r);
  }
  return places;
}

std::string Board::last_calls(const Turn& turn) const {
  std::ostringstream text;
  for (const int r : missing()) {
    const Call calls[] = {slot(r).calls[0].load(), slot(r).calls[1].load()};
    const Call& call = calls[0].sequence > calls[1].sequence ? calls[0] : calls[1];
    if (call.sequence > 0 && call.sequence < turn.call.sequence) {
      text << "; rank " << first_ + r << " was last in " << call.text_and_site();
    }
  }
  return text.str();
}

void Board::nobody_came(const Turn& turn) const {
  std::vector<int> ranks = missing();
  for (int& rank : ranks) rank += first_;
  time_out(turn, ranks, last_calls(turn));
}

void Board::announce(const Call& call) {
  const auto place = ++calls_ % 2;
  slot(place_).calls[place].store(call);
  slot(place_).digests[place] = call.digest();
  announced_ = true;
}

// Safe after a meeting: a place is written again only after the next one.
void Board::compare_calls() {
  announced_ = false;
  const auto place = calls_ % 2;
  const std::uint64_t mine = slot(place_).digests[place];
  bool same = true;
  for (int r = 0; r < size_; ++r) same = same && slot(r).digests[place] == mine;
  if (same) return;
  half_ = 0;  // different calls may have left the ranks at different halves
  std::vector<Call> calls;
  for (int r = 0; r < size_; ++r) calls.push_back(slot(r).calls[place].load());
  require_agreement(calls);
}

void require_agreement(const std::vector<Call>& calls) {
  for (std::size_t r = 1; r < calls.size(); ++r) {
    if (calls[r].agrees_with(calls[0])) continue;
    fail<Disagreement>(calls[0].op, ": expected the same call on every rank, got ",
                       calls[0].text_and_site(), " on rank 0 and ", calls[r].text_and_site(),
                       " on rank ", r);
  }
}

}  // namespace renga
