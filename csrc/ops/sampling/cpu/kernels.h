// The parts of SamplingKernels on the CPU that are in files of their own.
#pragma once

#include "ops/sampling/sampling.h"

namespace renga::sampling_cpu {

void resample(const Array& x, const Array& y, const std::vector<Resampling>& images);

void largest(const Array& x, const Regions& regions, double outside, const Array& y,
             const Array& found);
void gather(const Array& x, const Regions& regions, const Array& found, const Array& y);
void spread(const Array& gy, const Regions& regions, const Array& found, const Array& gx);

// An image's memory in elements.
template <class C>
struct Image {
  explicit Image(const Array& x)
      : data(x.as<C>()),
        image_step(x.strides()[0] / x.itemsize()),
        channel_step(x.strides()[1] / x.itemsize()),
        row_step(x.strides()[2] / x.itemsize()),
        pixel_step(x.strides()[3] / x.itemsize()) {}
  C* plane(std::int64_t n, std::int64_t c) const {
    return data + n * image_step + c * channel_step;
  }
  C* data;
  std::int64_t image_step, channel_step, row_step, pixel_step;
};

}  // namespace renga::sampling_cpu
