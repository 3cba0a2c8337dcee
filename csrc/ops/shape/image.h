// Images: arrays of shape (N, channels, extents...), in any order of memory.
#pragma once

#include "tensor/array.h"

namespace renga {

// The extents behind samples and channels.
Dims spatial_extents(const Array& image);

Shape image_shape(std::int64_t samples, std::int64_t channels, const Dims& extents);

// All axes but the channels', and that one last.
Axes channels_last_axes(int ndim);
// Returns the same image with shape (N, extents..., channels).
Array channels_last_view(const Array& image);

// An uninitialized image for the samples of `like`, on its device, with its axes in memory in
// `order`.
Array empty_image(const Array& like, std::int64_t channels, const Dims& extents, const Axes& order,
                  Dtype dtype);
// Returns an uninitialized image for the samples of `like` with the axes of a channels-last image
// and the dtype of `like`.
Array empty_channels_last(const Array& like, std::int64_t channels, const Dims& extents);

}  // namespace renga
