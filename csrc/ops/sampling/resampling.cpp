// Other sizes of images, and means of regions: products with banded matrices.
#include <algorithm>
#include <map>

#include "autograd/node.h"
#include "ops/indexing/index_check.h"
#include "ops/matmul/matmul.h"
#include "ops/sampling/image_layout.h"
#include "ops/sampling/regions.h"
#include "ops/shape/manipulation.h"
#include "tensor/views.h"

namespace renga {

constinit KernelTable<SamplingKernels> sampling_kernels{"sampling"};

namespace {

using Images = std::vector<Resampling>;
using SharedBand = std::shared_ptr<const Band>;

Images transposed_images(const Images& images) {
  std::map<SharedBand, SharedBand> known;
  const auto transpose_once = [&](const SharedBand& band) {
    SharedBand& found = known[band];
    if (!found) found = std::make_shared<Band>(transposed(*band));
    return found;
  };
  Images others;
  for (const Resampling& image : images) {
    others.push_back(
        {image.to, image.from, transpose_once(image.rows), transpose_once(image.columns)});
  }
  std::ranges::stable_sort(others, {}, &Resampling::to);
  return others;
}

Variable resampled(const char* name, const Variable& x, Images images, std::int64_t count,
                   const Dims& extents) {
  const Array from = with_known_layout(x.array());
  const Array y = empty_sampled(from, count, extents);
  sampling_kernels.on(y.device()).resample(from, y, images);
  auto vjp_x = [name, images = std::move(images), shape = x.shape()](const Variable& gy) {
    return resampled(name, gy, transposed_images(images), shape[0], {shape[2], shape[3]});
  };
  return record(name, y, {{x, vjp_x}});
}

std::vector<double> positions_of(const Array& given, std::int64_t size) {
  require(given.ndim() == 1 && is_float(given.dtype()),
          "resample_2d: expected positions as floats of one axis, got ", given.shape(), " of ",
          given.dtype());
  const Array on_host = to_device(contiguous(cast(given, Dtype::float64)), {});
  std::vector<double> positions(on_host.as<double>(), on_host.as<double>() + on_host.size());
  for (const double at : positions) {
    require<std::invalid_argument>(at >= 0 && at <= static_cast<double>(size - 1),
                                   "resample_2d: expected positions from 0 to ", size - 1, ", got ",
                                   at);
  }
  return positions;
}

// Returns the band as a matrix of x's dtype, on its device.
Array dense(const Band& band, std::int64_t size, const Variable& x) {
  const Array matrix = zeros({band.count(), size}, Dtype::float64);
  for (std::int64_t k = 0; k < band.taps; ++k) {
    for (std::int64_t i = 0; i < band.count(); ++i) {
      matrix.as<double>()[i * size + band.begin[static_cast<std::size_t>(i)] + k] +=
          band.weights[static_cast<std::size_t>(k * band.count() + i)];
    }
  }
  return to_device(cast(matrix, x.dtype()), x.device());
}

// This product is for devices without kernels of their own.
Variable multiplied(const Variable& x, const Band& rows, const Band& columns) {
  const Shape& shape = x.shape();
  const std::int64_t planes = shape[0] * shape[1], h = shape[2], w = shape[3];
  const Variable wide =
      matmul(reshape(x, {planes * h, w}), Variable(dense(columns, w, x)), false, true);
  const Array factor = dense(rows, h, x);
  const Array factors = broadcast_view("resample_2d", factor, {planes, rows.count(), h});
  const Variable y =
      matmul(Variable(factors), reshape(wide, {planes, h, columns.count()}), false, false);
  return reshape(y, {shape[0], shape[1], rows.count(), columns.count()});
}

}  // namespace

Variable resample_2d(const Variable& x, const Array& rows, const Array& columns) {
  require_image("resample_2d", x.array());
  const bool is_meta = x.device().is_meta();
  const auto band_of = [&](const Array& positions, int axis) {
    const std::int64_t size = x.shape(axis);
    return std::make_shared<const Band>(
        is_meta ? Band(size, 0, std::vector<Run>(static_cast<std::size_t>(positions.size())))
                : values_at(positions_of(positions, size), size));
  };
  const SharedBand down = band_of(rows, 2), across = band_of(columns, 3);
  if (!sampling_kernels.has(x.device())) return multiplied(x, *down, *across);
  return where_computed(x, [&](const Variable& image) {
    Images images;
    for (std::int64_t n = 0; n < x.shape(0); ++n) images.push_back({n, n, down, across});
    return resampled("Resample2D", image, std::move(images), x.shape(0),
                     {down->count(), across->count()});
  });
}

Variable roi_average_2d(const Variable& x, const Array& regions, const Array& images,
                        const Dims& outsize, const std::vector<std::int64_t>& samples) {
  const Regions points = regions_of("roi_average_2d", x.array(), regions, images, outsize, samples);
  return where_computed(x, [&](const Variable& image) {
    Images means;
    for (const Region& region : points) {
      means.push_back({region.image, static_cast<std::int64_t>(means.size()),
                       std::make_shared<Band>(means_of(region.rows, x.shape(2))),
                       std::make_shared<Band>(means_of(region.columns, x.shape(3)))});
    }
    return resampled("ROIAverage2D", image, std::move(means), regions.shape(0), outsize);
  });
}

}  // namespace renga
