#include "collectives/by_messages.h"

#include <cstring>

#include "collectives/agreement.h"
#include "collectives/shares.h"

namespace renga::by_messages {

namespace {

// A rank's share of a piece: large enough to hide the latency, small enough to stay in the cache.
constexpr std::int64_t kShare = std::int64_t{1} << 20;

std::span<std::byte> bytes_of(const Array& x) {
  return x.defined() ? bytes_at(x.data(), x.size() * x.itemsize()) : std::span<std::byte>();
}

}  // namespace

void exchange(const Turn& turn, const std::vector<Array>& sent,
              const std::vector<Array>& received) {
  const auto from = bytes_of(sent[turn.rank()]), to = bytes_of(received[turn.rank()]);
  const Kept kept_sent(sent), kept_received(received);
  agree_and_swap(
      turn, [&](int r) { return bytes_of(sent[r]); }, [&](int r) { return bytes_of(received[r]); });
  if (!to.empty() && to.data() != from.data()) std::memmove(to.data(), from.data(), to.size());
}

void broadcast(const Turn& turn, const Array& x, int root) {
  const int size = turn.size();
  const Group group = everyone(turn);
  const Kept kept({x});
  if (goes_along(turn, std::ssize(bytes_of(x)))) {
    const auto from = [&](int rank) { return rank == root ? bytes_of(x) : std::span<std::byte>(); };
    return agree_and_swap(
        turn, [&](int) { return from(turn.rank()); }, from);
  }
  agree(turn);
  const int place = (turn.rank() - root + size) % size;  // in a tree whose root is 0
  const auto rank_at = [&](int p) { return (p + root) % size; };
  int bit = 1;
  for (; bit < size; bit <<= 1) {
    if ((place & bit) == 0) continue;
    receive(group, bytes_of(x), rank_at(place - bit));
    break;
  }
  Transfers transfers;
  for (bit >>= 1; bit > 0; bit >>= 1) {
    if (place + bit < size) post_send(transfers, group, bytes_of(x), rank_at(place + bit));
  }
  finish(transfers, turn);
}

void all_reduce_short(const Turn& turn, const Flat& x, const Flat& y, Dtype dtype,
                      Reduction reduction) {
  const std::int64_t bytes = x.bytes();
  const Buffer all = buffer(turn.size() * bytes + bytes);
  const auto place = [&](int r) { return bytes_at(all.get() + r * bytes, bytes); };
  x.read(0, bytes, place(turn.rank()).data());
  agree_and_swap(
      turn, [&](int) { return place(turn.rank()); }, place);
  std::vector<const std::byte*> xs;
  for (int r = 0; r < turn.size(); ++r) xs.push_back(place(r).data());
  std::byte* const result = place(turn.size()).data();
  reduce(reduction, dtype, xs, result, bytes / size_of(dtype));
  y.write(0, bytes, result);
}

void all_reduce(const Turn& turn, const all_reduce::Network& network,
                std::optional<all_reduce::Algorithm> algorithm, const Flat& x, const Flat& y,
                Dtype dtype, Reduction reduction) {
  const std::int64_t piece = std::min(x.bytes(), turn.size() * kShare);
  const Buffer mine = buffer(piece);
  const Group group = everyone(turn);
  in_pieces(x.bytes(), piece, [&](std::int64_t begin, std::int64_t length) {
    x.read(begin, length, mine.get());
    run(group, {mine.get(), length / size_of(dtype), dtype, reduction}, network, algorithm);
    y.write(begin, length, mine.get());
  });
}

void reduce_scatter(const Turn& turn, const Flat& x, const Flat& y, Dtype dtype,
                    Reduction reduction) {
  if (y.bytes() == 0) return agree(turn);
  const int size = turn.size();
  const std::int64_t piece = std::min(y.bytes(), kShare);
  const Buffer mine = buffer(size * piece), theirs = buffer(size * piece);
  in_pieces(y.bytes(), piece, [&](std::int64_t begin, std::int64_t length) {
    for (int r = 0; r < size; ++r) x.read(r * y.bytes() + begin, length, mine.get() + r * length);
    const auto sent = [&](int to) { return bytes_at(mine.get() + to * length, length); };
    const auto kept = [&](int from) { return bytes_at(theirs.get() + from * length, length); };
    if (begin == 0) {
      agree_and_swap(turn, sent, kept);
    } else {
      swap_with_all(everyone(turn), sent, kept);
    }
    std::vector<const std::byte*> xs;
    for (int r = 0; r < size; ++r) {
      xs.push_back((r == turn.rank() ? mine : theirs).get() + r * length);
    }
    reduce(reduction, dtype, xs, mine.get(), length / size_of(dtype));
    y.write(begin, length, mine.get());
  });
}

}  // namespace renga::by_messages
