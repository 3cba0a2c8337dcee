// Images as kernels want them that walk over memory by themselves: (N, H, W, C), row-major.
#pragma once

#include "tensor/array.h"
#include "tensor/views.h"

namespace renga {

inline Array channels_last(const Array& x) { return transpose_view(x, {0, 2, 3, 1}); }

// An image (N, C, H, W) in any order of memory that is written to as such.
class ChannelsLastTarget {
 public:
  explicit ChannelsLastTarget(const Array& image) : image_(channels_last(image)) {
    dense_ = image_.is_contiguous() ? image_ : empty(image_.shape(), image_.dtype());
  }
  const Array& dense() const { return dense_; }
  void finish() const {
    if (!image_.is_contiguous()) copy(dense_, image_);
  }

 private:
  Array image_, dense_;
};

}  // namespace renga
