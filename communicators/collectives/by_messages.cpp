#include "collectives/by_messages.h"

#include <cstring>
#include <memory>

#include "collectives/board.h"
#include "collectives/shares.h"

namespace renga::by_messages {

namespace {

// A rank's share of a piece: large enough to hide the latency, small enough to stay in the cache.
constexpr std::int64_t kShare = std::int64_t{1} << 20;
// Below this, one round of whole vectors is faster than two rounds of shares.
constexpr std::int64_t kSmall = std::int64_t{1} << 13;

using Buffer = std::unique_ptr<std::byte[]>;

Buffer buffer(std::int64_t bytes) { return std::make_unique_for_overwrite<std::byte[]>(bytes); }

void post_send(Transfers& transfers, const Turn& turn, const void* data, std::int64_t bytes,
               int to) {
  if (bytes > 0) transfers.push_back(turn.transport.send(data, bytes, to, kCollectiveTag));
}

void post_receive(Transfers& transfers, const Turn& turn, void* data, std::int64_t bytes,
                  int from) {
  if (bytes > 0) transfers.push_back(turn.transport.receive(data, bytes, from, kCollectiveTag));
}

std::int64_t bytes_of(const Array& x) { return x.defined() ? x.size() * x.itemsize() : 0; }

// sent(r) and kept(r) give where the bytes for and from rank r are; bytes of sends and receives
// too.
template <class Sent, class Kept>
void swap_with_all(const Turn& turn, const Sent& sent, const Kept& kept) {
  Transfers transfers;
  // Starting behind oneself spreads the load: no rank is everybody's first partner.
  for (int step = 1; step < turn.size(); ++step) {
    const int from = (turn.rank() - step + turn.size()) % turn.size();
    const std::span<std::byte> place = kept(from);
    post_receive(transfers, turn, place.data(), std::ssize(place), from);
  }
  for (int step = 1; step < turn.size(); ++step) {
    const int to = (turn.rank() + step) % turn.size();
    const std::span<std::byte> bytes = sent(to);
    post_send(transfers, turn, bytes.data(), std::ssize(bytes), to);
  }
  finish(transfers, turn);
}

std::span<std::byte> part(std::byte* data, Stretch range) {
  return {data + range.begin, static_cast<std::size_t>(range.length())};
}

// Reduces everybody's `bytes` at `mine` into `mine`; `theirs` has room for the other ranks' bytes.
void reduce_whole(const Turn& turn, std::byte* mine, std::byte* theirs, std::int64_t bytes,
                  Dtype dtype, Reduction reduction) {
  const auto all = static_cast<std::size_t>(bytes);
  swap_with_all(
      turn, [&](int) { return std::span(mine, all); },
      [&](int from) { return std::span(theirs + from * bytes, all); });
  std::vector<const std::byte*> xs;
  for (int r = 0; r < turn.size(); ++r) xs.push_back(r == turn.rank() ? mine : theirs + r * bytes);
  reduce(reduction, dtype, xs, mine, bytes / size_of(dtype));
}

// The same, each rank reducing its share of them.
void reduce_shares(const Turn& turn, std::byte* mine, std::byte* theirs, std::int64_t bytes,
                   Dtype dtype, Reduction reduction) {
  const auto share_of = [&](int r) { return share(bytes, r, turn.size()); };
  const Stretch own = share_of(turn.rank());
  const auto length = static_cast<std::size_t>(own.length());
  swap_with_all(
      turn, [&](int to) { return part(mine, share_of(to)); },
      [&](int from) { return std::span(theirs + from * own.length(), length); });
  std::vector<const std::byte*> xs;
  for (int r = 0; r < turn.size(); ++r) {
    xs.push_back(r == turn.rank() ? mine + own.begin : theirs + r * own.length());
  }
  reduce(reduction, dtype, xs, mine + own.begin, own.length() / size_of(dtype));
  swap_with_all(
      turn, [&](int) { return part(mine, own); },
      [&](int from) { return part(mine, share_of(from)); });
}

}  // namespace

void agree(const Turn& turn) {
  std::vector<Call> calls(turn.size(), turn.call);
  const auto bytes_of_call = [&](int r) {
    return std::span(reinterpret_cast<std::byte*>(&calls[r]), sizeof(Call));
  };
  swap_with_all(
      turn, [&](int) { return bytes_of_call(turn.rank()); }, bytes_of_call);
  require_agreement(calls);
}

void exchange(const Turn& turn, const std::vector<Array>& sent,
              const std::vector<Array>& received) {
  const auto bytes = [](const Array& x) {
    return std::span(x.defined() ? x.data() : nullptr, static_cast<std::size_t>(bytes_of(x)));
  };
  const std::span<std::byte> from = bytes(sent[turn.rank()]), to = bytes(received[turn.rank()]);
  if (!to.empty() && to.data() != from.data()) std::memmove(to.data(), from.data(), to.size());
  swap_with_all(
      turn, [&](int r) { return bytes(sent[r]); }, [&](int r) { return bytes(received[r]); });
}

void broadcast(const Turn& turn, const Array& x, int root) {
  const int size = turn.size();
  const int place = (turn.rank() - root + size) % size;  // in a tree whose root is 0
  const auto rank_at = [&](int p) { return (p + root) % size; };
  int bit = 1;
  for (; bit < size; bit <<= 1) {
    if ((place & bit) == 0) continue;
    Transfers transfers;
    post_receive(transfers, turn, x.data(), bytes_of(x), rank_at(place - bit));
    finish(transfers, turn);
    break;
  }
  Transfers transfers;
  for (bit >>= 1; bit > 0; bit >>= 1) {
    if (place + bit < size) post_send(transfers, turn, x.data(), bytes_of(x), rank_at(place + bit));
  }
  finish(transfers, turn);
}

void all_reduce(const Turn& turn, const Flat& x, const Flat& y, Dtype dtype, Reduction reduction) {
  const std::int64_t piece = std::min(x.bytes(), turn.size() * kShare);
  const bool small = piece <= kSmall;
  const Buffer mine = buffer(piece);
  const Buffer theirs =
      buffer(turn.size() * (small ? piece : share(piece, 0, turn.size()).length()));
  in_pieces(x.bytes(), piece, [&](std::int64_t begin, std::int64_t length) {
    x.read(begin, length, mine.get());
    (small ? reduce_whole : reduce_shares)(turn, mine.get(), theirs.get(), length, dtype,
                                           reduction);
    y.write(begin, length, mine.get());
  });
}

void reduce_scatter(const Turn& turn, const Flat& x, const Flat& y, Dtype dtype,
                    Reduction reduction) {
  const int size = turn.size();
  const std::int64_t piece = std::min(y.bytes(), kShare);
  const Buffer mine = buffer(size * piece), theirs = buffer(size * piece);
  in_pieces(y.bytes(), piece, [&](std::int64_t begin, std::int64_t length) {
    const auto all = static_cast<std::size_t>(length);
    for (int r = 0; r < size; ++r) x.read(r * y.bytes() + begin, length, mine.get() + r * length);
    swap_with_all(
        turn, [&](int to) { return std::span(mine.get() + to * length, all); },
        [&](int from) { return std::span(theirs.get() + from * length, all); });
    std::vector<const std::byte*> xs;
    for (int r = 0; r < size; ++r) {
      xs.push_back((r == turn.rank() ? mine : theirs).get() + r * length);
    }
    reduce(reduction, dtype, xs, mine.get(), length / size_of(dtype));
    y.write(begin, length, mine.get());
  });
}

}  // namespace renga::by_messages
