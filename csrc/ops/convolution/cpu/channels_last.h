// Access to images in the layout of the kernels that index memory themselves: (N, H, W, C),
// row-major.
#pragma once

#include "ops/shape/image.h"
#include "tensor/views.h"

namespace renga::convolution {

inline bool is_channels_last(const Array& image) {
  return channels_last_view(image).is_contiguous();
}

inline Array dense_channels_last(const Array& image) {
  return contiguous(channels_last_view(image));
}

// Writes an image of any memory order. A kernel fills dense(); finish() copies it to the image if
// the two differ.
class ChannelsLastOutput {
 public:
  explicit ChannelsLastOutput(const Array& image) : image_(channels_last_view(image)) {
    dense_ = image_.is_contiguous() ? image_ : empty(image_.shape(), image_.dtype());
  }
  const Array& dense() const { return dense_; }
  void finish() const {
    if (!image_.is_contiguous()) copy(dense_, image_);
  }

 private:
  Array image_, dense_;
};

}  // namespace renga::convolution
