#include "collectives/all_reduce/algorithm_selection.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "tensor/error.h"

namespace renga::all_reduce {

namespace {

constexpr std::array<const char*, kAlgorithms> kNames = {
    "all_gather", "direct", "recursive_doubling", "rabenseifner", "tree", "torus", "ring"};

// Reading two operands and writing their sum, on one core.
constexpr double kSecondsPerReducedByte = 0.1e-9;

bool sends_operands(Algorithm algorithm) {
  return algorithm == Algorithm::all_gather || algorithm == Algorithm::direct;
}

// The time of `messages` with `bytes` in total, and of reducing `reduced` bytes of operands.
double time_of(const NetworkModel& network, double messages, double bytes, double reduced) {
  return messages * network.latency + bytes * network.seconds_per_byte +
         reduced * kSecondsPerReducedByte;
}

}  // namespace

const char* name_of(Algorithm algorithm) { return kNames[static_cast<std::size_t>(algorithm)]; }

std::optional<Algorithm> algorithm_from_string(const std::string& name) {
  if (name.empty()) return {};
  if (name == "whole") return Algorithm::all_gather;
  const auto* found = std::ranges::find(kNames, name);
  require<std::invalid_argument>(
      found != kNames.end(), "all_reduce: expected algorithm all_gather, direct, ",
      "recursive_doubling, rabenseifner, tree, torus or ring, got ", name);
  return static_cast<Algorithm>(found - kNames.begin());
}

int torus_width(int ranks) {
  int width = 1;
  while (ranks % (2 * width) == 0 && 4 * width * width <= ranks) width *= 2;
  return width;
}

double predicted_seconds(Algorithm algorithm, int ranks, std::int64_t bytes, bool is_16_bit,
                         const NetworkModel& network) {
  if (ranks == 1) return 0;
  const double p = ranks;
  const double n = static_cast<double>(bytes) * (is_16_bit && !sends_operands(algorithm) ? 2 : 1);
  const double participants = std::bit_floor(static_cast<unsigned>(ranks));
  const double steps = std::log2(participants);
  const double excess = participants < p ? time_of(network, 2, 2 * n, n) : 0;
  const auto others_partitions = [&](double count) { return (count - 1) / count * n; };
  switch (algorithm) {
    case Algorithm::all_gather:
      return time_of(network, p - 1, (p - 1) * n, (p - 1) * n);
    case Algorithm::direct:
    case Algorithm::ring:
      return time_of(network, 2 * (p - 1), 2 * others_partitions(p), others_partitions(p));
    case Algorithm::recursive_doubling:
      return excess + time_of(network, steps, steps * n, steps * n);
    case Algorithm::rabenseifner:
      return excess + time_of(network, 2 * steps, 2 * others_partitions(participants),
                              others_partitions(participants));
    case Algorithm::tree:
      return excess + time_of(network, 2 * steps, 2 * steps * n, steps * n);
    case Algorithm::torus: {
      const double width = torus_width(ranks);
      if (width == 1) break;
      const int height = ranks / static_cast<int>(width);
      return time_of(network, 2 * (width - 1), 2 * others_partitions(width),
                     others_partitions(width)) +
             predicted_seconds(Algorithm::rabenseifner, height,
                               static_cast<std::int64_t>(n / width), false, network);
    }
  }
  return std::numeric_limits<double>::infinity();
}

Algorithm fastest(int ranks, std::int64_t bytes, bool is_16_bit, const NetworkModel& network) {
  Algorithm best = Algorithm::all_gather;
  for (int i = 1; i < kAlgorithms; ++i) {
    const auto next = static_cast<Algorithm>(i);
    if (next == Algorithm::ring) continue;
    const auto time = [&](Algorithm a) {
      return predicted_seconds(a, ranks, bytes, is_16_bit, network);
    };
    if (time(next) < time(best)) best = next;
  }
  return best;
}

namespace {

void run_partial(Algorithm algorithm, const RankGroup& group, const Vector& v) {
  switch (algorithm) {
    case Algorithm::recursive_doubling:
      return recursive_doubling(group, v);
    case Algorithm::rabenseifner:
      return rabenseifner(group, v);
    case Algorithm::tree:
      return tree(group, v);
    case Algorithm::torus:
      return torus(group, v, torus_width(group.size()));
    case Algorithm::ring:
      return ring(group, v);
    default:
      return;
  }
}

}  // namespace

void run(const RankGroup& group, const Vector& v, const NetworkModel& network,
         std::optional<Algorithm> algorithm) {
  const bool is_16_bit = partial_dtype(v.dtype) != v.dtype;
  const Algorithm chosen = algorithm.value_or(fastest(group.size(), v.bytes(), is_16_bit, network));
  if (chosen == Algorithm::all_gather) return all_gather(group, v);
  if (chosen == Algorithm::direct) return direct(group, v);
  Vector partial = v;
  partial.dtype = partial_dtype(v.dtype);
  Buffer partial_vector;
  if (is_16_bit) {
    partial_vector = make_buffer(group.context, partial.bytes());
    partial.x = partial_vector.get();
    const std::byte* x = v.x;
    reduce_to_partial(v.reduction, v.dtype, Operands(&x, 1), partial.x, v.n);
  }
  run_partial(chosen, group, partial);
  if (is_16_bit || v.reduction == ReduceOp::mean) {
    finish_partial(v.reduction, v.dtype, group.size(), partial.x, v.x, v.n);
  }
}

}  // namespace renga::all_reduce
