// The layouts of images that kernels of this family know: channels last, or else rows of pixels.
#pragma once

#include "autograd/node.h"
#include "autograd/variable.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/sampling/sampling.h"
#include "ops/shape/image.h"
#include "ops/shape/manipulation.h"

namespace renga {

inline void require_image(const char* op, const Array& x) {
  require(is_float(x.dtype()), op, ": expected a float dtype, got ", x.dtype());
  require(x.ndim() == 4, op, ": expected x with 4 axes, got ", x.shape());
}

inline bool has_channels_last(const Array& x) {
  return x.shape(1) > 1 && x.strides()[1] == x.itemsize() &&
         x.strides()[3] == x.shape(1) * x.itemsize();
}

// Returns the same image with channels or columns that are contiguous.
inline Array with_known_layout(const Array& x) {
  return has_channels_last(x) || x.strides()[3] == x.itemsize() ? x : contiguous(x);
}

// An image of other extents in the layout of `like`.
inline Array empty_sampled(const Array& like, std::int64_t count, const Dims& extents) {
  const Shape shape = image_shape(count, like.shape(1), extents);
  return has_channels_last(like)
             ? empty_in_order(shape, channels_last_axes(4), like.dtype(), like.device())
             : empty(shape, like.dtype(), like.device());
}

// x on a device; its gradient comes back to x's.
inline Variable on_device(const Variable& x, Device device) {
  const Device from = x.device();
  if (from == device) return x;
  return record("Copy", to_device(x.array(), device),
                {{x, [from](const Variable& gy) { return on_device(gy, from); }}});
}

// f(x), computed on the host if x's device has no kernels.
template <class Function>
Variable where_computed(const Variable& x, const Function& f) {
  const Device device = sampling_kernels.computing(x.device());
  return device == x.device() ? f(x) : on_device(f(on_device(x, device)), x.device());
}

// f(x), computed there, and in float32 if x has a narrower dtype.
template <class Function>
Variable in_singles(const Variable& x, const Function& f) {
  return where_computed(x, [&](const Variable& image) {
    if (size_of(x.dtype()) >= size_of(Dtype::float32)) return f(image);
    return cast(f(cast(image, Dtype::float32)), x.dtype());
  });
}

}  // namespace renga
