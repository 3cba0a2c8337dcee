#include <algorithm>
#include <chrono>
#include <cstring>
#include <vector>

#include "collectives/all_reduce/choice.h"

namespace renga::all_reduce {

namespace {

constexpr std::int64_t kShort = 64;
constexpr std::int64_t kLong = std::int64_t{1} << 18;

// The shortest time that a message takes, of several there and back.
double one_way(const Group& group, int partner, std::byte* data, std::int64_t bytes, int rounds) {
  using Clock = std::chrono::steady_clock;
  auto best = Clock::duration::max();
  for (int round = 0; round < rounds; ++round) {
    const auto start = Clock::now();
    if (group.place < partner) {
      send(group, bytes_at(data, bytes), partner);
      receive(group, bytes_at(data, bytes), partner);
    } else {
      receive(group, bytes_at(data, bytes), partner);
      send(group, bytes_at(data, bytes), partner);
    }
    best = std::min(best, Clock::now() - start);
  }
  return std::chrono::duration<double>(best).count() / 2;
}

}  // namespace

Network measure(const Turn& turn) {
  const Group group = everyone(turn);
  const int half = group.size() / 2;
  Network mine{0, 0};
  if (group.place < 2 * half) {
    const int partner = group.place < half ? group.place + half : group.place - half;
    const Buffer data = buffer(kLong);
    std::fill_n(data.get(), kLong, std::byte{});
    mine.latency = one_way(group, partner, data.get(), kShort, 10);
    const double time = one_way(group, partner, data.get(), kLong, 3);
    mine.seconds_per_byte = std::max(0.0, time - mine.latency) / kLong;
  }
  const auto item = static_cast<std::int64_t>(sizeof(Network));
  const Buffer all = buffer(group.size() * item);
  const auto bytes_of = [&](int r) { return bytes_at(all.get() + r * item, item); };
  std::memcpy(bytes_of(group.place).data(), &mine, sizeof(mine));
  swap_with_all(
      group, [&](int) { return bytes_of(group.place); }, bytes_of);
  for (int r = 0; r < group.size(); ++r) {
    Network theirs;
    std::memcpy(&theirs, bytes_of(r).data(), sizeof(theirs));
    mine.latency = std::max(mine.latency, theirs.latency);
    mine.seconds_per_byte = std::max(mine.seconds_per_byte, theirs.seconds_per_byte);
  }
  return mine;
}

}  // namespace renga::all_reduce
