// Sequences of different lengths.
#pragma once

#include <vector>

#include "ops/list.h"

namespace renga {

// For each time an array of what all sequences that are long enough hold then. The lengths do not
// increase; the dtype is the first one's. The results lie one after the other in memory.
std::vector<Variable> transpose_sequence(const std::vector<Variable>& xs);

template <class Visit>
void list_sequence_ops(Visit&& visit) {
  visit(Op{"transpose_sequence", "[(T1, ...), (T2, ...), ...] -> [(B1, ...), (B2, ...), ...]",
           "Sequences, longest first, by time instead of by sample."},
        &transpose_sequence, Arg{"xs"});
}

}  // namespace renga
