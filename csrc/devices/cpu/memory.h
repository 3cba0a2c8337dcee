// How much memory this process may use.
#pragma once

#include <cstdint>

namespace renga {

// Bytes of memory and swap of this machine, or of the control group if that allows less.
std::int64_t total_memory();
// Returns how many of those bytes can be had without swapping other processes out.
std::int64_t available_memory();

}  // namespace renga
