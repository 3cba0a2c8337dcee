// The largest of points in cells of regions of images.
#include "ops/sampling/regions.h"

#include <cmath>

#include "autograd/node.h"
#include "ops/indexing/index_check.h"
#include "ops/sampling/image_layout.h"

namespace renga {
namespace {

using SharedRegions = std::shared_ptr<const Regions>;

// Each is the other's gradient.
Variable gather(const Variable& x, const SharedRegions& regions, const Array& found);

Variable spread(const Variable& gy, const SharedRegions& regions, const Array& found,
                const Shape& shape) {
  const Array gx = zeros(shape, gy.dtype(), gy.device());
  sampling_kernels.on(gx.device()).spread(contiguous(gy.array()), *regions, found, gx);
  return record("ROIMax2DGrad", gx,
                {{gy, [=](const Variable& ggx) { return gather(ggx, regions, found); }}});
}

Variable gather(const Variable& x, const SharedRegions& regions, const Array& found) {
  const Array y = empty(found.shape(), x.dtype(), x.device());
  sampling_kernels.on(y.device()).gather(contiguous(x.array()), *regions, found, y);
  return record("ROIMax2DPoints", y, {{x, [=, shape = x.shape()](const Variable& gy) {
                                         return spread(gy, regions, found, shape);
                                       }}});
}

}  // namespace

Regions regions_of(const char* op, const Array& x, const Array& regions, const Array& images,
                   const Dims& outsize, const std::vector<std::int64_t>& samples) {
  require_image(op, x);
  require(regions.ndim() == 2 && regions.shape(1) == 4 && images.ndim() == 1 &&
              images.shape(0) == regions.shape(0),
          op, ": expected regions (R, 4) and their images (R,), got ", regions.shape(), " and ",
          images.shape());
  require<std::invalid_argument>(outsize.size() == 2 && outsize[0] > 0 && outsize[1] > 0, op,
                                 ": expected an outsize of 2 numbers above 0, got ", outsize);
  require<std::invalid_argument>(samples.size() == 2, op, ": expected samples of 2 numbers, got ",
                                 samples.size());
  if (x.device().is_meta()) return {};
  require(x.shape(2) > 0 && x.shape(3) > 0, op, ": expected images with pixels, got ", x.shape());
  const Array image = checked_indices(op, "images", images, x.shape(0), {});
  const Array sides = to_device(contiguous(cast(regions, Dtype::float64)), {});
  Regions all;
  for (std::int64_t r = 0; r < regions.shape(0); ++r) {
    const double* const side = sides.as<double>() + 4 * r;
    for (int k = 0; k < 4; ++k) {
      require<std::invalid_argument>(std::isfinite(side[k]) && std::isfinite(side[k] - side[k % 2]),
                                     op, ": expected finite regions, got one from ", side[k % 2],
                                     " to ", side[k]);
    }
    all.push_back({image.as<std::int64_t>()[r],
                   cell_points(side[0], side[2], outsize[0], x.shape(2), samples[0]),
                   cell_points(side[1], side[3], outsize[1], x.shape(3), samples[1])});
  }
  return all;
}

Variable roi_max_2d(const Variable& x, const Array& regions, const Array& images,
                    const Dims& outsize, const std::vector<std::int64_t>& samples, double outside) {
  const SharedRegions points = std::make_shared<const Regions>(
      regions_of("roi_max_2d", x.array(), regions, images, outsize, samples));
  return in_singles(x, [&](const Variable& image) {
    const Shape shape{regions.shape(0), x.shape(1), outsize[0], outsize[1]};
    const Array y = empty(shape, image.dtype(), image.device());
    const Array found = empty(shape, Dtype::int32, image.device());
    sampling_kernels.on(y.device()).largest(contiguous(image.array()), *points, outside, y, found);
    return record("ROIMax2D", y, {{image, [=, shape = x.shape()](const Variable& gy) {
                                     return spread(gy, points, found, shape);
                                   }}});
  });
}

}  // namespace renga
