// Which way of reducing by messages takes the least time, by a model of the network.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "collectives/all_reduce/algorithms.h"

namespace renga::all_reduce {

enum class Algorithm : std::uint8_t {
  whole,
  direct,
  recursive_doubling,
  rabenseifner,
  tree,
  torus,
  ring,
};
inline constexpr int kAlgorithms = 7;

const char* name_of(Algorithm algorithm);
// None for "" ; throws std::invalid_argument for a name that there is not.
std::optional<Algorithm> algorithm_from_string(const std::string& name);

// A message of n bytes takes latency + n * seconds_per_byte. Each end carries one message at a
// time, in each direction.
struct Network {
  double latency = 20e-6;
  double seconds_per_byte = 1e-9;
};

// The seconds that `algorithm` takes for a vector of `bytes` on `ranks` ranks. 16-bit floats travel
// as 32 bits where they are reduced on the way. Infinite where it is not to be had.
double seconds(Algorithm algorithm, int ranks, std::int64_t bytes, bool halves,
               const Network& network);

// The fastest of those that keep the order of the operands.
Algorithm fastest(int ranks, std::int64_t bytes, bool halves, const Network& network);

// The width of the torus's rows: 1 where there are none.
int torus_width(int ranks);

// What this rank and its partner in the other half of the group find, and all others theirs: the
// slowest pair's. All ranks call it.
Network measure(const Turn& turn);

// Reduces in place, by the given way or by the fastest.
void run(const Group& group, const Vector& v, const Network& network,
         std::optional<Algorithm> algorithm);

}  // namespace renga::all_reduce
