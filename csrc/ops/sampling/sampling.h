// Images at points between their pixels: other sizes, grids of points, and regions of interest.
#pragma once

#include <memory>
#include <vector>

#include "devices/kernel_table.h"
#include "ops/list.h"
#include "ops/sampling/band.h"

namespace renga {

// Image `to` of the results gets rows * x * columns^T of each channel of image `from`.
struct Resampling {
  std::int64_t from, to;
  std::shared_ptr<const Band> rows, columns;
};

// The order of the derivatives, along rows and columns, of interpolation; 0 or 1.
struct Derivative {
  int rows = 0, columns = 0;
};

// A region of image `image`: the largest of the points in each of its cells.
struct Region {
  std::int64_t image;
  CellPoints rows, columns;
};
using Regions = std::vector<Region>;

// Images are float32 or float64, to resample any floats, with contiguous channels, or else columns.
// Points are as many for each image, contiguous and of the images' dtype.
struct SamplingKernels {
  // Sums, in their order, for results that are named several times, and zeros elsewhere.
  void (*resample)(const Array& x, const Array& y, const std::vector<Resampling>& images);
  // y (N, C, 1, P), whose layout is x's: derivatives of the values at points; 0 outside of the
  // images. Its transpose adds gy to gx.
  void (*sample)(const Array& x, const Array& rows, const Array& columns, Derivative order,
                 const Array& y);
  void (*scatter)(const Array& gy, const Array& rows, const Array& columns, Derivative order,
                  const Array& gx);
  // The sums over channels of gy times both derivatives.
  void (*move_points)(const Array& x, const Array& rows, const Array& columns, const Array& gy,
                      const Array& g_rows, const Array& g_columns);
  // y (R, C, rows, columns) of cells, `outside` where they have no point. `found` is the point's
  // number of each, row-major, or -1.
  void (*largest)(const Array& x, const Regions& regions, double outside, const Array& y,
                  const Array& found);
  // y = the values at the points that were found, or 0; and its transpose, which adds.
  void (*gather)(const Array& x, const Regions& regions, const Array& found, const Array& y);
  void (*spread)(const Array& gy, const Regions& regions, const Array& found, const Array& gx);
};
extern KernelTable<SamplingKernels> sampling_kernels;

// These sample at all pairs of positions of rows and of columns, in pixels.
Variable resample_2d(const Variable& x, const Array& rows, const Array& columns);
Variable sample_2d(const Variable& x, const Variable& rows, const Variable& columns);
// Regions are (R, 4): top, left, bottom, right in pixels. `samples` are the points of cells along
// rows and columns, or 0 and below as in cell_points.
Variable roi_average_2d(const Variable& x, const Array& regions, const Array& images,
                        const Dims& outsize, const std::vector<std::int64_t>& samples);
Variable roi_max_2d(const Variable& x, const Array& regions, const Array& images,
                    const Dims& outsize, const std::vector<std::int64_t>& samples, double outside);

template <class Visit>
void list_sampling_ops(Visit&& visit) {
  constexpr Traits planewise{.locality = Locality::planewise, .flops = {.per_output = 7}};
  visit(Op{"resample_2d", "(N, C, H, W), (H',), (W',) -> (N, C, H', W')",
           "Bilinear interpolation at all pairs of positions of rows and columns, in pixels.",
           planewise},
        &resample_2d, Arg{"x"}, Arg{"rows"}, Arg{"columns"});
  visit(Op{"sample_2d", "(N, C, H, W), (N, ...), (N, ...) -> (N, C, ...)",
           "Bilinear interpolation at points in pixels; 0 outside.",
           Traits{.locality = Locality::batchwise, .flops = {.per_output = 7}}},
        &sample_2d, Arg{"x"}, Arg{"rows"}, Arg{"columns"});
  visit(Op{"roi_average_2d", "(N, C, H, W), (R, 4), (R,) -> (R, C, H', W')",
           "Mean of the points in each of equal cells of regions (top, left, bottom, right).",
           Traits{.locality = Locality::channelwise}},
        &roi_average_2d, Arg{"x"}, Arg{"regions"}, Arg{"images"}, Arg{"outsize"}, Arg{"samples"});
  visit(Op{"roi_max_2d", "(N, C, H, W), (R, 4), (R,) -> (R, C, H', W')",
           "Largest of the points in each of equal cells of regions (top, left, bottom, right).",
           Traits{.locality = Locality::channelwise}},
        &roi_max_2d, Arg{"x"}, Arg{"regions"}, Arg{"images"}, Arg{"outsize"}, Arg{"samples"},
        Arg{"outside"});
}

}  // namespace renga
