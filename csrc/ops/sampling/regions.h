// Regions of interest from arrays of coordinates.
#pragma once

#include <vector>

#include "ops/sampling/sampling.h"

namespace renga {

// The points of each region (R, 4), in pixels of the images x, in cells of `outsize`; none for
// images of no device. Throws InvalidType or std::invalid_argument naming `op`.
Regions regions_of(const char* op, const Array& x, const Array& regions, const Array& images,
                   const Dims& outsize, const std::vector<std::int64_t>& samples);

}  // namespace renga
