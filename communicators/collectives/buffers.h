// Memory for the operands and results of collectives: contiguous, and not overwritten too early.
#pragma once

#include <vector>

#include "tensor/array.h"

namespace renga {

// Whether data can be sent from, and received into, the array itself.
using IsDirect = bool (*)(const Array& x);

inline bool is_contiguous(const Array& x) { return x.is_contiguous(); }

// Whether all arrays that are defined are direct.
bool are_direct(const std::vector<Array>& xs, IsDirect is_direct);
// The arrays themselves where they are direct, contiguous copies otherwise.
std::vector<Array> send_buffers(std::vector<Array> xs, IsDirect is_direct);
// The arrays themselves where they are direct, new contiguous ones otherwise.
std::vector<Array> receive_buffers(std::vector<Array> ys, IsDirect is_direct);
// Copies what was received into buffers that are not the arrays themselves.
void copy_received(const std::vector<Array>& buffers, const std::vector<Array>& ys);

// The operands of xs[i] -> ys[i], with copies of those that a result could overwrite before they
// are read. An operand may be identical to its result. `own` is for one operand of all results: the
// index of the result to which it may be identical.
std::vector<Array> safe_inputs(const std::vector<Array>& xs, const std::vector<Array>& ys,
                               int own = -1);

}  // namespace renga
