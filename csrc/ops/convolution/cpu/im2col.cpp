// Convolution of one sample after the other by im2col and a matrix product, for dtypes, axes and
// extents that oneDNN does not support.
#include "ops/convolution/cpu/cost.h"
#include "ops/convolution/cpu/padded_image.h"
#include "ops/convolution/cpu/selection.h"
#include "ops/elementwise/elementwise.h"
#include "ops/matmul/matmul.h"
#include "ops/shape/image.h"
#include "tensor/views.h"

namespace renga::convolution {
namespace {

// Pads one sample of x, (channels, extents...).
PaddedImage pad(const Array& x, const Dims& kernel, const Dims& positions, const Window& window) {
  const Dims extents = padded_extents(spatial_extents(x), kernel, positions, window);
  return zero_padded(select_view(x, 0, 0), extents, window.pad);
}

// Returns what a kernel offset reads at every position: (channels, positions...).
Array elements_at(const Array& padded, const Dims& offset, const Dims& positions,
                  const Window& window) {
  Array elements = padded;
  for (int axis = 0; axis < offset.size(); ++axis) {
    elements = slice_view(elements, 1 + axis, offset[axis] * window.dilate[axis], positions[axis],
                          window.stride[axis]);
  }
  return elements;
}

// Returns the elements of a kernel offset in columns of shape (channels, kernel..., positions...).
Array column_of(const Array& columns, const Dims& offset) {
  Array column = columns;
  for (std::int64_t index : offset) column = select_view(column, 1, index);
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

// Views of a problem's operands, and buffers for the columns and the result of one sample.
class Im2col {
 public:
  explicit Im2col(const Problem& problem)
      : x_(problem.x),
        y_(problem.y),
        window_(problem.window),
        kernel_(spatial_extents(problem.W)),
        positions_(spatial_extents(y_)),
        padded_(pad(x_, kernel_, positions_, window_)),
        columns_(empty(shape_of(x_.shape(1), kernel_, positions_), x_.dtype(), x_.device())),
        y_sample_(empty(shape_of(y_.shape(1), positions_), y_.dtype(), y_.device())) {}

  // (groups, I / groups * kernel offsets, positions)
  Array columns() const {
    return reshape_view(columns_,
                        {window_.groups, columns_.size() / pixels() / window_.groups, pixels()});
  }
  // The buffered sample of y: (groups, O / groups, positions)
  Array y_sample() const {
    return reshape_view(y_sample_, {window_.groups, y_.shape(1) / window_.groups, pixels()});
  }
  // (groups, O / groups, I / groups * kernel offsets)
  Array weights(const Array& W) const {
    return reshape_view(W, {window_.groups, y_.shape(1) / window_.groups,
                            x_.shape(1) / window_.groups * kernel_.product()});
  }

  // Copies the windows of sample n of x to the columns.
  void im2col(std::int64_t n) const {
    copy(select_view(x_, 0, n), padded_.image);
    for_each_offset([&](const Dims& offset) {
      copy(elements_at(padded_.all, offset, positions_, window_), column_of(columns_, offset));
    });
  }
  // The transpose of im2col: elements that several windows share are added up.
  void col2im(std::int64_t n) const {
    fill(padded_.all, 0);
    for_each_offset([&](const Dims& offset) {
      const Array target = elements_at(padded_.all, offset, positions_, window_);
      elementwise_kernels.on(target.device())
          .binary(Binary::add, 0, target, column_of(columns_, offset), target);
    });
    copy(padded_.image, select_view(x_, 0, n));
  }
  void load_y(std::int64_t n) const { copy(select_view(y_, 0, n), y_sample_); }
  void store_y(std::int64_t n) const { copy(y_sample_, select_view(y_, 0, n)); }

 private:
  std::int64_t pixels() const { return positions_.product(); }

  // Calls body(offset) for every kernel offset, in row-major order.
  template <class Body>
  void for_each_offset(const Body& body) const {
    Dims offset = Dims::filled(kernel_.size(), 0);
    for (std::int64_t k = 0; k < kernel_.product(); ++k) {
      body(offset);
      for (int axis = kernel_.size() - 1; axis >= 0 && ++offset[axis] == kernel_[axis]; --axis) {
        offset[axis] = 0;
      }
    }
  }

  Array x_, y_;
  Window window_;
  Dims kernel_, positions_;
  PaddedImage padded_;
  Array columns_, y_sample_;
};

void multiply_into(const Array& a, const Array& b, const Array& c, bool accumulate = false) {
  matmul_kernels.on(c.device()).matmul(a, b, c, {{}, accumulate}, nullptr);
}

Array transposed(const Array& matrices) { return transpose_view(matrices, {0, 2, 1}); }

void forward(const Problem& problem, const Im2col& views) {
  const Array weights = views.weights(contiguous(problem.W));
  for (std::int64_t n = 0; n < problem.x.shape(0); ++n) {
    views.im2col(n);
    multiply_into(weights, views.columns(), views.y_sample());
    views.store_y(n);
  }
}

void input_grad(const Problem& problem, const Im2col& views) {
  const Array weights = transposed(views.weights(contiguous(problem.W)));
  for (std::int64_t n = 0; n < problem.x.shape(0); ++n) {
    views.load_y(n);
    multiply_into(weights, views.y_sample(), views.columns());
    views.col2im(n);
  }
}

void weight_grad(const Problem& problem, const Im2col& views) {
  fill(problem.W, 0);
  const Array gW = views.weights(problem.W);
  for (std::int64_t n = 0; n < problem.x.shape(0); ++n) {
    views.im2col(n);
    views.load_y(n);
    multiply_into(views.y_sample(), transposed(views.columns()), gW, true);
  }
}

bool supports(const Problem& problem) {
  return problem.x.dtype() == Dtype::float32 || problem.x.dtype() == Dtype::float64;
}

void run(const Problem& problem, const Epilogue&) {
  const Im2col views(problem);
  switch (problem.pass) {
    case Pass::forward:
      return forward(problem, views);
    case Pass::input_grad:
      return input_grad(problem, views);
    case Pass::weight_grad:
      return weight_grad(problem, views);
  }
}

}  // namespace

constinit const Algorithm kIm2col{"im2col", supports, highest_cost, run};

}  // namespace renga::convolution
