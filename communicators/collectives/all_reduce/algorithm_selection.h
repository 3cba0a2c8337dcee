// Chooses the fastest all-reduce algorithm by a model of the network.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "collectives/all_reduce/algorithms.h"

namespace renga::all_reduce {

enum class Algorithm : std::uint8_t {
  all_gather,
  direct,
  recursive_doubling,
  rabenseifner,
  tree,
  torus,
  ring,
};
inline constexpr int kAlgorithms = 7;

const char* name_of(Algorithm algorithm);
// None for "". "whole" is an older name of all_gather. Throws std::invalid_argument for an unknown
// name.
std::optional<Algorithm> algorithm_from_string(const std::string& name);

// A message of n bytes takes latency + n * seconds_per_byte. Each rank sends one message at a time
// and receives one at a time.
struct NetworkModel {
  double latency = 20e-6;  // seconds
  double seconds_per_byte = 1e-9;
};

// The predicted time for a vector of `bytes` on `ranks` ranks; infinite where the algorithm does
// not apply. `is_16_bit`: elements are 16-bit floats, which travel as 32 bits in the algorithms
// that reduce while they communicate.
double predicted_seconds(Algorithm algorithm, int ranks, std::int64_t bytes, bool is_16_bit,
                         const NetworkModel& network);

// The fastest of those that keep the order of the operands.
Algorithm fastest(int ranks, std::int64_t bytes, bool is_16_bit, const NetworkModel& network);

// The width of the torus's rows; 1 if there is no torus of so many ranks.
int torus_width(int ranks);

// Measures messages between pairs of ranks of the two halves, and returns the slowest pair's
// numbers. All ranks call it.
NetworkModel measure_network(const CollectiveContext& context);

// Reduces in place, with `algorithm` or else the fastest.
void run(const RankGroup& group, const Vector& v, const NetworkModel& network,
         std::optional<Algorithm> algorithm);

}  // namespace renga::all_reduce
