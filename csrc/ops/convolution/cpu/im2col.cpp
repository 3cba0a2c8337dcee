#include "ops/convolution/cpu/im2col.h"

#include "ops/elementwise/elementwise.h"
#include "ops/matmul/matmul.h"
#include "tensor/views.h"

namespace renga {
namespace {

Dims extents_of(const Array& x) { return Dims(std::span(x.shape().begin() + 2, x.shape().end())); }

// An image with its padding: (channels, extents...), zero outside of the image.
struct Padded {
  Array all;
  Array image;  // the part of `all` without the padding
};

// For one of the images x, large enough for all `positions` of the window.
Padded padded(const Array& x, const Dims& kernel, const Dims& positions, const Window& window) {
  Shape shape{x.shape(1)};
  for (int axis = 0; axis < kernel.size(); ++axis) {
    const std::int64_t covered =
        (positions[axis] - 1) * window.stride[axis] + window.reach(kernel[axis], axis);
    shape.push_back(std::max(covered, x.shape(2 + axis) + window.pad[axis]));
  }
  const Array all = zeros(shape, x.dtype(), x.device());
  Array image = all;
  for (int axis = 0; axis < kernel.size(); ++axis) {
    image = slice_view(image, 1 + axis, window.pad[axis], x.shape(2 + axis));
  }
  return {all, image};
}

// What the element of the kernel at `tap` meets in every position: (channels, positions...).
Array met_by(const Array& all, const Dims& tap, const Dims& positions, const Window& window) {
  Array met = all;
  for (int axis = 0; axis < tap.size(); ++axis) {
    met = slice_view(met, 1 + axis, tap[axis] * window.dilate[axis], positions[axis],
                     window.stride[axis]);
  }
  return met;
}

// The same element in columns of shape (channels, kernel..., positions...).
Array column_of(const Array& columns, const Dims& tap) {
  Array column = columns;
  for (std::int64_t index : tap) column = select_view(column, 1, index);
  return column;
}

// (channels, extents..., more extents...)
Shape shape_of(std::int64_t channels, const Dims& extents, const Dims& more = {}) {
  Shape shape{channels};
  for (const Dims* dims : {&extents, &more}) {
    for (std::int64_t extent : *dims) shape.push_back(extent);
  }
  return shape;
}

// The pieces of one convolution: views on its operands, and memory for one image's columns.
class Unfolding {
 public:
  Unfolding(const Array& x, const Array& W, const Array& y, const Window& window)
      : x_(x),
        y_(y),
        window_(window),
        kernel_(extents_of(W)),
        positions_(extents_of(y)),
        patch_(padded(x, kernel_, positions_, window)),
        columns_(empty(shape_of(x.shape(1), kernel_, positions_), x.dtype(), x.device())),
        result_(empty(shape_of(y.shape(1), positions_), y.dtype(), y.device())) {}

  // (groups, I / groups * taps, positions)
  Array columns() const {
    return reshape_view(columns_,
                        {window_.groups, columns_.size() / pixels() / window_.groups, pixels()});
  }
  // One image of y without its strides: (groups, O / groups, positions)
  Array result() const {
    return reshape_view(result_, {window_.groups, y_.shape(1) / window_.groups, pixels()});
  }
  // (groups, O / groups, I / groups * taps)
  Array weights(const Array& W) const {
    return reshape_view(W, {window_.groups, y_.shape(1) / window_.groups,
                            x_.shape(1) / window_.groups * kernel_.product()});
  }

  void unfold(std::int64_t n) const {
    copy(select_view(x_, 0, n), patch_.image);
    each_tap([&](const Dims& tap) {
      copy(met_by(patch_.all, tap, positions_, window_), column_of(columns_, tap));
    });
  }
  // The transpose of unfold: elements that several windows share are added up.
  void fold(std::int64_t n) const {
    fill(patch_.all, 0);
    each_tap([&](const Dims& tap) {
      const Array target = met_by(patch_.all, tap, positions_, window_);
      elementwise_kernels.on(target.device())
          .binary(Binary::add, 0, target, column_of(columns_, tap), target);
    });
    copy(patch_.image, select_view(x_, 0, n));
  }
  void load_result(std::int64_t n) const { copy(select_view(y_, 0, n), result_); }
  void store_result(std::int64_t n) const { copy(result_, select_view(y_, 0, n)); }

 private:
  std::int64_t pixels() const { return positions_.product(); }

  // Calls body(tap) for every element of the kernel, in row-major order.
  template <class Body>
  void each_tap(const Body& body) const {
    Dims tap = Dims::filled(kernel_.size(), 0);
    for (std::int64_t k = 0; k < kernel_.product(); ++k) {
      body(tap);
      for (int axis = kernel_.size() - 1; axis >= 0 && ++tap[axis] == kernel_[axis]; --axis) {
        tap[axis] = 0;
      }
    }
  }

  Array x_, y_;
  Window window_;
  Dims kernel_, positions_;
  Padded patch_;
  Array columns_, result_;
};

void multiply_into(const Array& a, const Array& b, const Array& c, bool accumulate = false) {
  matmul_kernels.on(c.device()).matmul(a, b, c, accumulate);
}

Array transposed(const Array& matrices) { return transpose_view(matrices, {0, 2, 1}); }

}  // namespace

void unfolded_forward(const Array& x, const Array& W, const Array& y, const Window& window) {
  const Unfolding unfolding(x, W, y, window);
  const Array weights = unfolding.weights(contiguous(W));
  for (std::int64_t n = 0; n < x.shape(0); ++n) {
    unfolding.unfold(n);
    multiply_into(weights, unfolding.columns(), unfolding.result());
    unfolding.store_result(n);
  }
}

void unfolded_input_grad(const Array& gy, const Array& W, const Array& gx, const Window& window) {
  const Unfolding unfolding(gx, W, gy, window);
  const Array weights = transposed(unfolding.weights(contiguous(W)));
  for (std::int64_t n = 0; n < gx.shape(0); ++n) {
    unfolding.load_result(n);
    multiply_into(weights, unfolding.result(), unfolding.columns());
    unfolding.fold(n);
  }
}

void unfolded_weight_grad(const Array& gy, const Array& x, const Array& gW, const Window& window) {
  const Unfolding unfolding(x, gW, gy, window);
  fill(gW, 0);
  for (std::int64_t n = 0; n < x.shape(0); ++n) {
    unfolding.unfold(n);
    unfolding.load_result(n);
    multiply_into(unfolding.result(), transposed(unfolding.columns()), unfolding.weights(gW), true);
  }
}

}  // namespace renga
