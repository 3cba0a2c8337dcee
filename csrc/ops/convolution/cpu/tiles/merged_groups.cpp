#include "ops/convolution/cpu/tiles/merged_groups.h"

#include <algorithm>

#include "simd/tiles.h"
#include "tensor/views.h"

namespace renga::convolution::tiles {
namespace {

// The part of merged weights that belongs to a group.
Array group_view(const Array& merged_W, std::int64_t groups, std::int64_t merged,
                 std::int64_t group) {
  const std::int64_t outputs = merged_W.shape(0) / groups, inputs = merged_W.shape(1) / merged;
  const Array rows = slice_view(merged_W, 0, group * outputs, outputs);
  return slice_view(rows, 1, group % merged * inputs, inputs);
}

}  // namespace

std::int64_t merged_groups(const Problem& problem) {
  constexpr std::int64_t kMostChannels = 64;
  const std::int64_t groups = problem.window.groups;
  const std::int64_t inputs = problem.W.shape(1), outputs = problem.W.shape(0) / groups;
  const auto [few, many] = std::minmax(inputs, outputs);
  if (groups == 1 || few >= simd::kTileEdge) return 1;
  for (std::int64_t merged = 2; merged <= groups && merged * many <= kMostChannels; ++merged) {
    if (groups % merged == 0 && merged * few >= simd::kTileEdge) return merged;
  }
  return 0;
}

Array merge_filters(const Array& W, std::int64_t groups, std::int64_t merged) {
  Shape shape = W.shape();
  shape[1] *= merged;
  const Array wide = zeros(shape, W.dtype());
  const std::int64_t outputs = W.shape(0) / groups;
  for (std::int64_t group = 0; group < groups; ++group) {
    copy(slice_view(W, 0, group * outputs, outputs), group_view(wide, groups, merged, group));
  }
  return wide;
}

void split_gradients(const Array& merged_gW, std::int64_t groups, std::int64_t merged,
                     const Array& gW) {
  const std::int64_t outputs = gW.shape(0) / groups;
  for (std::int64_t group = 0; group < groups; ++group) {
    copy(group_view(merged_gW, groups, merged, group), slice_view(gW, 0, group * outputs, outputs));
  }
}

}  // namespace renga::convolution::tiles
