#include "ops/convolution_unfold.h"

#include "ops/elementwise.h"
#include "ops/matmul.h"
#include "tensor/views.h"

namespace renga {
namespace {

// An image with its padding: (channels, rows, columns), zero outside of the image.
struct Padded {
  Array all;
  Array image;  // the part of `all` without the padding
};

// For one of the images x, large enough for all `positions` of the window.
Padded padded(const Array& x, const Pair& kernel, const Pair& positions, const Window& window) {
  Shape shape{x.shape(1)};
  for (int axis : {0, 1}) {
    const std::int64_t covered =
        (positions[axis] - 1) * window.stride[axis] + window.reach(kernel[axis], axis);
    shape.push_back(std::max(covered, x.shape(2 + axis) + window.pad[axis]));
  }
  const Array all = zeros(shape, x.dtype(), x.device());
  Array image = all;
  for (int axis : {0, 1}) {
    image = slice_view(image, 1 + axis, window.pad[axis], x.shape(2 + axis));
  }
  return {all, image};
}

// What element (i, j) of the kernel meets in every position: (channels, positions...).
Array met_by(const Array& all, std::int64_t i, std::int64_t j, const Pair& positions,
             const Window& window) {
  const Array rows = slice_view(all, 1, i * window.dilate[0], positions[0], window.stride[0]);
  return slice_view(rows, 2, j * window.dilate[1], positions[1], window.stride[1]);
}

// Element (i, j) of the kernel in columns of shape (channels, kh, kw, positions...).
Array column_of(const Array& columns, std::int64_t i, std::int64_t j) {
  return select_view(select_view(columns, 1, i), 1, j);
}

// The pieces of one convolution: views on its operands, and memory for one image's columns.
class Unfolding {
 public:
  Unfolding(const Array& x, const Array& W, const Array& y, const Window& window)
      : x_(x),
        y_(y),
        window_(window),
        kernel_{W.shape(2), W.shape(3)},
        positions_{y.shape(2), y.shape(3)},
        patch_(padded(x, kernel_, positions_, window)),
        columns_(empty({x.shape(1), kernel_[0], kernel_[1], positions_[0], positions_[1]},
                       x.dtype(), x.device())),
        result_(empty({y.shape(1), positions_[0], positions_[1]}, y.dtype(), y.device())) {}

  // (groups, I / groups * kh * kw, positions)
  Array columns() const {
    return reshape_view(columns_,
                        {window_.groups, columns_.size() / pixels() / window_.groups, pixels()});
  }
  // One image of y without its strides: (groups, O / groups, positions)
  Array result() const {
    return reshape_view(result_, {window_.groups, y_.shape(1) / window_.groups, pixels()});
  }
  // (groups, O / groups, I / groups * kh * kw)
  Array weights(const Array& W) const {
    return reshape_view(W, {window_.groups, y_.shape(1) / window_.groups,
                            x_.shape(1) / window_.groups * kernel_[0] * kernel_[1]});
  }

  void unfold(std::int64_t n) const {
    copy(select_view(x_, 0, n), patch_.image);
    each_element([&](std::int64_t i, std::int64_t j) {
      copy(met_by(patch_.all, i, j, positions_, window_), column_of(columns_, i, j));
    });
  }
  // The transpose of unfold: elements that several windows share are added up.
  void fold(std::int64_t n) const {
    fill(patch_.all, 0);
    each_element([&](std::int64_t i, std::int64_t j) {
      const Array target = met_by(patch_.all, i, j, positions_, window_);
      elementwise_kernels.on(target.device())
          .binary(Binary::add, 0, target, column_of(columns_, i, j), target);
    });
    copy(patch_.image, select_view(x_, 0, n));
  }
  void load_result(std::int64_t n) const { copy(select_view(y_, 0, n), result_); }
  void store_result(std::int64_t n) const { copy(result_, select_view(y_, 0, n)); }

 private:
  std::int64_t pixels() const { return positions_[0] * positions_[1]; }

  template <class Body>
  void each_element(const Body& body) const {
    for (std::int64_t i = 0; i < kernel_[0]; ++i) {
      for (std::int64_t j = 0; j < kernel_[1]; ++j) body(i, j);
    }
  }

  Array x_, y_;
  Window window_;
  Pair kernel_, positions_;
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
