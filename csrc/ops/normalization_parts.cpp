#include "ops/normalization_parts.h"

#include "ops/normalization.h"
#include "tensor/views.h"

namespace renga {
namespace {

const NormalizationKernels& kernels(const Array& x) { return normalization_kernels.on(x.device()); }

Channels channels_of(const char* op, const Array& x, const Axes& axes) {
  require(is_float(x.dtype()), op, ": expected x of a float dtype, got ", x.dtype());
  return by_channels(x, normalize_axes(op, axes, x.ndim()));
}

Array vector_for(const Channels& x) {
  const Dtype dtype = x.array.dtype() == Dtype::float64 ? Dtype::float64 : Dtype::float32;
  return empty({x.layout.channels}, dtype, x.array.device());
}

// A vector as the kernels take it.
Array as_vector(const char* op, const Array& vector, const Channels& x) {
  require(vector.size() == x.layout.channels, op, ": expected vectors of ", x.layout.channels,
          " elements, got ", vector.shape());
  const Array given = contiguous(vector);
  const Array y = vector_for(x);
  copy(reshape_view(given, {given.size()}), y);
  return y;
}

Array in_layout_of(const char* op, const Channels& x, const Array& gy) {
  require(gy.shape() == x.array.shape(), op, ": expected gy of shape ", x.array.shape(), ", got ",
          gy.shape());
  const Array moved = empty_like(x.array);
  if (gy.dtype() == moved.dtype() && gy.strides() == moved.strides()) return gy;
  copy(gy, moved);
  return moved;
}

}  // namespace

std::tuple<Array, Array> channel_moments(const Array& x, const Axes& axes) {
  const Channels xs = channels_of("channel_moments", x, axes);
  const Array mean = vector_for(xs), var = vector_for(xs);
  kernels(xs.array).moments(xs, mean, var);
  return {mean, var};
}

Array channel_normalize(const Array& x, const Array& mean, const Array& scale, const Array& beta,
                        const Axes& axes) {
  const char* op = "channel_normalize";
  const Channels xs = channels_of(op, x, axes);
  const Array y = empty_like(xs.array);
  kernels(y).normalize(
      {xs, as_vector(op, mean, xs), as_vector(op, scale, xs), as_vector(op, beta, xs)}, y);
  return y;
}

std::tuple<Array, Array> channel_gradient_sums(const Array& x, const Array& gy, const Array& mean,
                                               const Axes& axes) {
  const char* op = "channel_gradient_sums";
  const Channels xs = channels_of(op, x, axes);
  const Array sum_gy = vector_for(xs), sum_gy_x = vector_for(xs);
  const Array about = as_vector(op, mean, xs), none = vector_for(xs);
  kernels(xs.array).gradient_sums({xs, about, none, none}, in_layout_of(op, xs, gy), sum_gy,
                                  sum_gy_x);
  return {sum_gy, sum_gy_x};
}

Array channel_input_grad(const Array& x, const Array& gy, const Array& mean, const Array& scale,
                         const Array& shift, const Array& slope, const Axes& axes) {
  const char* op = "channel_input_grad";
  const Channels xs = channels_of(op, x, axes);
  const Array gx = empty_like(xs.array);
  const Normalization of{xs, as_vector(op, mean, xs), as_vector(op, scale, xs), vector_for(xs)};
  kernels(gx).input_grad(of, in_layout_of(op, xs, gy), as_vector(op, shift, xs),
                         as_vector(op, slope, xs), gx);
  return gx;
}

}  // namespace renga
