#include "collectives/all_reduce/choice.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "tensor/error.h"

namespace renga::all_reduce {

namespace {

constexpr std::array<const char*, kAlgorithms> kNames = {
    "whole", "direct", "recursive_doubling", "rabenseifner", "tree", "torus", "ring"};

// Reading two operands and writing their sum, on one core.
constexpr double kSecondsPerReducedByte = 0.1e-9;

bool gathers(Algorithm algorithm) {
  return algorithm == Algorithm::whole || algorithm == Algorithm::direct;
}

// Of `steps` messages that carry `bytes` altogether, and of `reduced` bytes of operands.
double time_of(const Network& network, double steps, double bytes, double reduced) {
  return steps * network.latency + bytes * network.seconds_per_byte +
         reduced * kSecondsPerReducedByte;
}

}  // namespace

const char* name_of(Algorithm algorithm) { return kNames[static_cast<std::size_t>(algorithm)]; }

std::optional<Algorithm> algorithm_from_string(const std::string& name) {
  if (name.empty()) return {};
  const auto* found = std::ranges::find(kNames, name);
  require<std::invalid_argument>(
      found != kNames.end(), "all_reduce: expected algorithm whole, direct, recursive_doubling, ",
      "rabenseifner, tree, torus or ring, got ", name);
  return static_cast<Algorithm>(found - kNames.begin());
}

int torus_width(int ranks) {
  int width = 1;
  while (ranks % (2 * width) == 0 && 4 * width * width <= ranks) width *= 2;
  return width;
}

double seconds(Algorithm algorithm, int ranks, std::int64_t bytes, bool halves,
               const Network& network) {
  if (ranks == 1) return 0;
  const double p = ranks;
  const double n = static_cast<double>(bytes) * (halves && !gathers(algorithm) ? 2 : 1);
  const double nodes = std::bit_floor(static_cast<unsigned>(ranks));
  const double log = std::log2(nodes);
  const double fold = nodes < p ? time_of(network, 2, 2 * n, n) : 0;
  const auto part = [&](double count) { return (count - 1) / count * n; };
  switch (algorithm) {
    case Algorithm::whole:
      return time_of(network, p - 1, (p - 1) * n, (p - 1) * n);
    case Algorithm::direct:
    case Algorithm::ring:
      return time_of(network, 2 * (p - 1), 2 * part(p), part(p));
    case Algorithm::recursive_doubling:
      return fold + time_of(network, log, log * n, log * n);
    case Algorithm::rabenseifner:
      return fold + time_of(network, 2 * log, 2 * part(nodes), part(nodes));
    case Algorithm::tree:
      return fold + time_of(network, 2 * log, 2 * log * n, log * n);
    case Algorithm::torus: {
      const double x = torus_width(ranks);
      if (x == 1) break;
      const int column = ranks / static_cast<int>(x);
      return time_of(network, 2 * (x - 1), 2 * part(x), part(x)) +
             seconds(Algorithm::rabenseifner, column, static_cast<std::int64_t>(n / x), false,
                     network);
    }
  }
  return std::numeric_limits<double>::infinity();
}

Algorithm fastest(int ranks, std::int64_t bytes, bool halves, const Network& network) {
  Algorithm best = Algorithm::whole;
  for (int i = 1; i < kAlgorithms; ++i) {
    const auto next = static_cast<Algorithm>(i);
    if (next == Algorithm::ring) continue;
    const auto time = [&](Algorithm a) { return seconds(a, ranks, bytes, halves, network); };
    if (time(next) < time(best)) best = next;
  }
  return best;
}

namespace {

void run_partial(Algorithm algorithm, const Group& group, const Vector& v) {
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

void run(const Group& group, const Vector& v, const Network& network,
         std::optional<Algorithm> algorithm) {
  const bool halves = partial_dtype(v.dtype) != v.dtype;
  const Algorithm way = algorithm.value_or(fastest(group.size(), v.bytes(), halves, network));
  if (way == Algorithm::whole) return whole(group, v);
  if (way == Algorithm::direct) return direct(group, v);
  Vector partial = v;
  partial.dtype = partial_dtype(v.dtype);
  Buffer wide;
  if (halves) {
    wide = buffer(partial.bytes());
    partial.x = wide.get();
    const std::byte* x = v.x;
    begin_partial(v.reduction, v.dtype, Operands(&x, 1), partial.x, v.n);
  }
  run_partial(way, group, partial);
  if (halves || v.reduction == Reduction::mean) {
    end_partial(v.reduction, v.dtype, group.size(), partial.x, v.x, v.n);
  }
}

}  // namespace renga::all_reduce
