// Contiguous memory for the operands and results of collectives.
#pragma once

#include <vector>

#include "tensor/array.h"

namespace renga {

// Whether data can be sent from, and received into, the array itself.
using IsDirect = bool (*)(const Array& x);

inline bool is_contiguous(const Array& x) { return x.is_contiguous(); }

// The arrays themselves where they are direct, contiguous copies otherwise.
std::vector<Array> send_buffers(const std::vector<Array>& xs, IsDirect is_direct);
// The arrays themselves where they are direct, new contiguous ones otherwise.
std::vector<Array> receive_buffers(const std::vector<Array>& ys, IsDirect is_direct);
// Copies what was received into buffers that are not the arrays themselves.
void copy_received(const std::vector<Array>& buffers, const std::vector<Array>& ys);

}  // namespace renga
