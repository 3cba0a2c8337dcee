// Sequences of different lengths.
#pragma once

#include <vector>

#include "ops/list.h"

namespace renga {

// Returns an array per time step, with the elements of all sequences that are long enough. Lengths
// must not increase; the dtype is that of the first sequence. The results are adjoining views of
// one array.
std::vector<Variable> transpose_sequence(const std::vector<Variable>& xs);

template <class Visit>
void list_sequence_ops(Visit&& visit) {
  visit(Op{"transpose_sequence", "[(T1, ...), (T2, ...), ...] -> [(B1, ...), (B2, ...), ...]",
           "Sequences, longest first, by time instead of by sample."},
        &transpose_sequence, Arg{"xs"});
}

}  // namespace renga
