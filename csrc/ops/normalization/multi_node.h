// Batches that lie on several ranks and are normalized as one. The core knows no communicator, only
// a function that shows each rank what all have.
#pragma once

#include <functional>
#include <optional>

#include "autograd/variable.h"

namespace renga {

struct Ranks {
  // (...) of float64, without gaps, on each rank -> (ranks, ...), the same on all. Each calls it
  // when the others do.
  std::function<Array(const Array&)> gather;
  // Whether gamma and beta are the same on all ranks: so are their gradients then, those of all
  // batches together. Otherwise a rank's are of its own batch.
  bool common = false;
  // Given where gamma and beta are common and lie in parts: the first channel of this rank's.
  std::optional<std::int64_t> first = {};
};

// What a batch is normalized by: vectors over channels.
struct BatchStatistics {
  double count;  // of elements per channel
  Array mean, var;
  Array gamma, beta;  // those of this rank where they lie in parts, all after merge()
};
// Those of all ranks' batches together, in one message. A batch may be empty.
BatchStatistics merge(const Ranks& ranks, const BatchStatistics& own);

// The sum of the ranks' arrays, formed in float64.
Array sum_over(const Ranks& ranks, const Array& x);

// For gradients written with operations. A sum that each rank uses for itself: in the backward
// pass, too, the ranks are summed up.
Variable sum_over(const Ranks& ranks, const Variable& x);
// gamma of all channels, used by each rank for itself.
Variable whole_parameter(const Ranks& ranks, const Variable& gamma, std::int64_t channels);
// The gradient of gamma or beta as it lies, given that by this rank's batch and its sum_over().
Variable parameter_gradient(const Ranks& ranks, const Variable& own, const Variable& sum,
                            const Shape& shape);

}  // namespace renga
