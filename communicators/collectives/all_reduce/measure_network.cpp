#include <algorithm>
#include <chrono>
#include <cstring>

#include "collectives/all_reduce/algorithm_selection.h"

namespace renga::all_reduce {

namespace {

constexpr std::int64_t kShortBytes = 64;
constexpr std::int64_t kLongBytes = std::int64_t{1} << 18;

// Half the shortest of several round trips, in seconds.
double one_way(const RankGroup& group, int partner, std::byte* data, std::int64_t bytes,
               int rounds) {
  using Clock = std::chrono::steady_clock;
  auto best = Clock::duration::max();
  for (int round = 0; round < rounds; ++round) {
    const auto start = Clock::now();
    if (group.position < partner) {
      send(group, byte_span(data, bytes), partner);
      receive(group, byte_span(data, bytes), partner);
    } else {
      receive(group, byte_span(data, bytes), partner);
      send(group, byte_span(data, bytes), partner);
    }
    best = std::min(best, Clock::now() - start);
  }
  return std::chrono::duration<double>(best).count() / 2;
}

}  // namespace

NetworkModel measure_network(const CollectiveContext& context) {
  const RankGroup group = all_ranks(context);
  const int half = group.size() / 2;
  NetworkModel slowest{0, 0};
  if (group.position < 2 * half) {
    const int partner = group.position < half ? group.position + half : group.position - half;
    const Buffer data = make_buffer(context, kLongBytes);
    std::fill_n(data.get(), kLongBytes, std::byte{});
    slowest.latency = one_way(group, partner, data.get(), kShortBytes, 10);
    const double time = one_way(group, partner, data.get(), kLongBytes, 3);
    slowest.seconds_per_byte = std::max(0.0, time - slowest.latency) / kLongBytes;
  }
  const auto item = static_cast<std::int64_t>(sizeof(NetworkModel));
  const Buffer models = make_buffer(context, group.size() * item);
  const auto bytes_of = [&](int r) { return byte_span(models.get() + r * item, item); };
  std::memcpy(bytes_of(group.position).data(), &slowest, sizeof(slowest));
  send_receive_all(
      group, [&](int) { return bytes_of(group.position); }, bytes_of);
  for (int r = 0; r < group.size(); ++r) {
    NetworkModel other;
    std::memcpy(&other, bytes_of(r).data(), sizeof(other));
    slowest.latency = std::max(slowest.latency, other.latency);
    slowest.seconds_per_byte = std::max(slowest.seconds_per_byte, other.seconds_per_byte);
  }
  return slowest;
}

}  // namespace renga::all_reduce
