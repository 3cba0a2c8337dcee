// Groups of few channels, merged: a filter with zeros between the groups that are merged fills
// tiles, of which a product takes less time than the convolution of each group by itself.
#pragma once

#include <cstdint>

#include "ops/convolution/problem.h"

namespace renga::convolution::tiles {

// Returns how many groups are best merged into one: 1 where each fills tiles, 0 where none do.
std::int64_t merged_groups(const Problem& problem);

// The weights (outputs, inputs of a group, kernel...) of groups, `merged` of which are one: zeros
// but for the inputs of the group itself.
Array merge_filters(const Array& W, std::int64_t groups, std::int64_t merged);
// Writes to gW what belongs to the groups themselves in the gradient of such merged weights.
void split_gradients(const Array& merged_gW, std::int64_t groups, std::int64_t merged,
                     const Array& gW);

}  // namespace renga::convolution::tiles
