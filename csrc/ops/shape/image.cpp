#include "ops/shape/image.h"

#include "tensor/views.h"

namespace renga {

Dims spatial_extents(const Array& image) {
  return Dims(std::span(image.shape().begin() + 2, image.shape().end()));
}

Shape image_shape(std::int64_t samples, std::int64_t channels, const Dims& extents) {
  Shape shape{samples, channels};
  for (std::int64_t extent : extents) shape.push_back(extent);
  return shape;
}

Axes channels_last_axes(int ndim) {
  Axes axes{0};
  for (int axis = 2; axis < ndim; ++axis) axes.push_back(axis);
  axes.push_back(1);
  return axes;
}

Array channels_last_view(const Array& image) {
  return transpose_view(image, channels_last_axes(image.ndim()));
}

Array empty_image(const Array& like, std::int64_t channels, const Dims& extents, const Axes& order,
                  Dtype dtype) {
  return empty_in_order(image_shape(like.shape(0), channels, extents), order, dtype, like.device());
}

Array empty_channels_last(const Array& like, std::int64_t channels, const Dims& extents) {
  return empty_image(like, channels, extents, channels_last_axes(like.ndim()), like.dtype());
}

}  // namespace renga
