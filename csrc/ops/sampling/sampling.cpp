// Values of images at any points, and their derivatives.
#include "ops/sampling/sampling.h"

#include "autograd/node.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/reduction/reduction.h"
#include "ops/sampling/image_layout.h"
#include "tensor/views.h"

namespace renga {
namespace {

// Points of each image, (N, P).
struct Points {
  Variable rows, columns;
};

Array in_rows(const Variable& points) { return contiguous(points.array()); }

// (N, C, P) as images of one row.
Array as_images(const Array& values) { return expand_view(values, 2); }

// Each is the other's gradient for x and gy.
Variable sampled(const Variable& x, const Points& points, Derivative order);
Variable scattered(const Variable& gy, const Points& points, const Shape& shape, Derivative order);

// The gradient of the points' rows, or columns: the sum over channels of gy times the derivative of
// the values at the points of x.
Variable moved(const Variable& x, const Points& points, Derivative order, int axis,
               const Variable& gy) {
  ++(axis == 0 ? order.rows : order.columns);
  return sum(multiply(gy, sampled(x, points, order)), Axes{1});
}

Variable zeros_like(const Variable& x, const Shape& shape) {
  return Variable(zeros(shape, x.dtype(), x.device()));
}

Variable sampled(const Variable& x, const Points& points, Derivative order) {
  const Shape shape{x.shape(0), x.shape(1), points.rows.shape(1)};
  if (order.rows > 1 || order.columns > 1) return zeros_like(x, shape);  // it is linear in each
  const Array from = with_known_layout(x.array());
  const Array y = empty_sampled(from, shape[0], {1, shape[2]});
  sampling_kernels.on(y.device())
      .sample(from, in_rows(points.rows), in_rows(points.columns), order, y);
  auto back = [=](std::span<const Variable> gys, std::span<const int> wanted, Node&) {
    std::vector<Variable> gs(3);
    const bool is_plain = order.rows == 0 && order.columns == 0 && !backprop_enabled();
    for (const int i : wanted) {
      if (i == 0) {
        gs[0] = scattered(gys[0], points, x.shape(), order);
      } else if (!is_plain) {
        gs[static_cast<std::size_t>(i)] = moved(x, points, order, i - 1, gys[0]);
      } else if (!gs[1].defined()) {
        const Array gy = empty_sampled(from, shape[0], {1, shape[2]});
        copy(as_images(gys[0].array()), gy);
        for (const int k : {1, 2}) {
          gs[static_cast<std::size_t>(k)] =
              Variable(empty(points.rows.shape(), x.dtype(), x.device()));
        }
        sampling_kernels.on(x.device())
            .move_points(from, in_rows(points.rows), in_rows(points.columns), gy, gs[1].array(),
                         gs[2].array());
      }
    }
    return gs;
  };
  const Array flat = reshape_view(y, shape);
  const Variable xs[] = {x, points.rows, points.columns};
  return record_all("Sample2D", {&flat, 1}, xs, back)[0];
}

Variable scattered(const Variable& gy, const Points& points, const Shape& shape, Derivative order) {
  if (order.rows > 1 || order.columns > 1) return zeros_like(gy, shape);
  const Array from = with_known_layout(as_images(gy.array()));
  const Array gx = empty_sampled(from, shape[0], {shape[2], shape[3]});
  fill(gx, 0);
  sampling_kernels.on(gx.device())
      .scatter(from, in_rows(points.rows), in_rows(points.columns), order, gx);
  auto back = [=](std::span<const Variable> ggs, std::span<const int> wanted, Node&) {
    std::vector<Variable> gs(3);
    for (const int i : wanted) {
      gs[static_cast<std::size_t>(i)] =
          i == 0 ? sampled(ggs[0], points, order) : moved(ggs[0], points, order, i - 1, gy);
    }
    return gs;
  };
  const Variable xs[] = {gy, points.rows, points.columns};
  return record_all("Sample2DGrad", {&gx, 1}, xs, back)[0];
}

}  // namespace

Variable sample_2d(const Variable& x, const Variable& rows, const Variable& columns) {
  require_image("sample_2d", x.array());
  require(rows.ndim() > 0 && rows.shape(0) == x.shape(0) && rows.shape() == columns.shape() &&
              are_compatible(rows.dtype(), x.dtype()) && are_compatible(columns.dtype(), x.dtype()),
          "sample_2d: expected x (N, C, H, W) and two coordinates (N, ...) of its dtype, got ",
          x.shape(), ", ", rows.shape(), " and ", columns.shape(), " of ", x.dtype(), ", ",
          rows.dtype(), " and ", columns.dtype());
  const Shape each{rows.shape(0), rows.shape(0) > 0 ? rows.size() / rows.shape(0) : 0};
  Shape shape = rows.shape();
  shape.insert(1, x.shape(1));
  const Variable y = in_singles(x, [&](const Variable& image) {
    const auto flat = [&](const Variable& points) {
      return on_device(cast(reshape(points, each), image.dtype()), image.device());
    };
    return sampled(image, {flat(rows), flat(columns)}, {});
  });
  return reshape(y, shape);
}

}  // namespace renga
