// Statistics of a batch that is sharded over ranks. The core has no communicator, only a function
// that gathers an array of all ranks.
#pragma once

#include <functional>
#include <optional>

#include "autograd/variable.h"

namespace renga {

struct StatisticsGroup {
  // All-gather of a contiguous float64 array: (...) of each rank -> (ranks, ...), the same on all.
  // Every rank calls it at the same points.
  std::function<Array(const Array&)> all_gather;
  // Whether gamma and beta are the same on all ranks. Then their gradients are those of all batches
  // together; otherwise those of a rank's own batch.
  bool shared_parameters = false;
  // With shared parameters that are sharded over the ranks: the first channel of this rank's shard.
  std::optional<std::int64_t> channel_offset = {};
};

// Vectors over channels that normalize a batch.
struct BatchStatistics {
  double count;  // elements per channel
  Array mean, var;
  Array gamma, beta;  // this rank's shards if they are sharded; those of all ranks after merge()
};
// The statistics of all ranks' batches, in one message. A batch may be empty.
BatchStatistics merge(const StatisticsGroup& ranks, const BatchStatistics& local);

// All-reduce: the sum of the ranks' arrays, computed in float64.
Array sum_over(const StatisticsGroup& ranks, const Array& x);

// This sum is for gradients written with operations. The VJP of this all-reduce is an all-reduce.
Variable sum_over(const StatisticsGroup& ranks, const Variable& x);
// gamma of all channels on each rank.
Variable gather_parameter(const StatisticsGroup& ranks, const Variable& gamma,
                          std::int64_t channels);
// The gradient of this rank's gamma or beta, from that of its own batch and the sum over all ranks.
Variable parameter_gradient(const StatisticsGroup& ranks, const Variable& local,
                            const Variable& sum, const Shape& shape);

}  // namespace renga
