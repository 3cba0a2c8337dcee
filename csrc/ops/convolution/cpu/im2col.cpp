// Convolution by im2col and products of matrices, for dtypes, axes and extents that oneDNN does not
// support, and for gradients of large windows that do not overlap. Images are channels last: the
// numbers of a position are a row of a matrix.
#include <algorithm>
#include <vector>

#include "devices/parallel.h"
#include "ops/convolution/cpu/channels_last.h"
#include "ops/convolution/cpu/cost.h"
#include "ops/convolution/cpu/selection.h"
#include "ops/matmul/matmul.h"
#include "simd/cpu_features.h"
#include "tensor/views.h"

namespace renga::convolution {
namespace {

// Kernel offsets of one row of an image that adjoin in memory, where a position reads them.
struct Run {
  std::int64_t column;                 // of the first one, among the numbers of all columns
  std::int64_t before, inside, after;  // numbers in the padding, in the image, and in the padding
  std::int64_t pixel;                  // the first number that is in the image
};

// What positions of the smaller image read of the larger one. Positions are counted along samples
// and axes, and so are rows of the image: its positions but for the last axis.
class Windows {
 public:
  explicit Windows(const Problem& problem)
      : window_(problem.window),
        kernel_(spatial_extents(problem.W)),
        image_(spatial_extents(problem.x)),
        positions_(spatial_extents(problem.y)),
        samples_(problem.x.shape(0)),
        channels_(problem.x.shape(1)),
        joined_(groups() == 1 && window_.dilate.back() == 1 ? kernel_.back() : 1) {}

  std::int64_t groups() const { return window_.groups; }
  std::int64_t positions() const { return samples_ * positions_.product(); }
  // The numbers that a position reads in a group.
  std::int64_t numbers() const { return kernel_.product() * group_size(); }
  // Whether a position reads the pixel of the same number.
  bool are_pixels() const {
    return kernel_.product() == 1 && image_ == positions_ &&
           window_.stride == Dims::filled(image_.size(), 1);
  }

  // Calls body(row of the image, run) for what positions from begin to end read, in an order that
  // does not depend on the range. Columns are of (groups, positions from `first` on, kernel
  // offsets, channels of a group), where a group has `count` positions. Rows in the padding are
  // kOutside.
  template <class Body>
  void for_each_run(std::int64_t begin, std::int64_t end, std::int64_t first, std::int64_t count,
                    const Body& body) const {
    const std::int64_t line = positions_.back(), offsets = kernel_.back();
    const std::int64_t size = group_size(), extent = image_.back();
    std::vector<std::int64_t> rows;
    for (std::int64_t position = begin, next = begin; position < end; position = next) {
      next = std::min(end, position / line * line + line);
      find_rows(position / line, rows);
      for (std::int64_t g = 0; g < groups(); ++g) {
        for (std::int64_t i = 0; i < static_cast<std::int64_t>(rows.size()); ++i) {
          const std::int64_t row = rows[static_cast<std::size_t>(i)];
          for (std::int64_t p = position; p < next; ++p) {
            for (std::int64_t k = 0; k < offsets; k += joined_) {
              const std::int64_t from =
                  p % line * window_.stride.back() + k * window_.dilate.back() - window_.pad.back();
              const std::int64_t before =
                  row == kOutside ? joined_ : std::clamp<std::int64_t>(-from, 0, joined_);
              const std::int64_t until = std::clamp(extent - from, before, joined_);
              const Run run{(g * count + p - first) * numbers() + (i * offsets + k) * size,
                            before * size, (until - before) * size, (joined_ - until) * size,
                            (row * extent + from + before) * channels_ + g * size};
              body(row, run);
            }
          }
        }
      }
    }
  }

  // The first and last rows of the image that these positions may read.
  std::pair<std::int64_t, std::int64_t> rows_read(std::int64_t begin, std::int64_t end) const {
    const std::int64_t each = positions_.product(), rows = image_.product() / image_.back();
    return {begin / each * rows, divide_up(end, each) * rows};
  }

  static constexpr std::int64_t kOutside = -1;

 private:
  std::int64_t group_size() const { return channels_ / groups(); }

  // The rows of the image that each kernel offset but for the last axis reads at a line of
  // positions.
  void find_rows(std::int64_t line, std::vector<std::int64_t>& rows) const {
    const int axes = kernel_.size() - 1;
    Dims first = Dims::filled(axes, 0), offset = first;
    for (int axis = axes - 1; axis >= 0; --axis) {
      first[axis] = line % positions_[axis] * window_.stride[axis] - window_.pad[axis];
      line /= positions_[axis];
    }
    rows.clear();
    for (std::int64_t k = 0; k < kernel_.product() / kernel_.back(); ++k) {
      std::int64_t row = line;
      for (int axis = 0; axis < axes; ++axis) {
        const std::int64_t at = first[axis] + offset[axis] * window_.dilate[axis];
        const bool is_inside = row != kOutside && at >= 0 && at < image_[axis];
        row = is_inside ? row * image_[axis] + at : kOutside;
      }
      rows.push_back(row);
      for (int axis = axes - 1; axis >= 0 && ++offset[axis] == kernel_[axis]; --axis) {
        offset[axis] = 0;
      }
    }
  }

  const Window& window_;
  const Dims kernel_, image_, positions_;
  const std::int64_t samples_, channels_;
  const std::int64_t joined_;  // kernel offsets of a run
};

// The pass of a problem, by the product of some positions after the other.
template <class T>
class Im2col {
 public:
  Im2col(const Problem& problem, const Array& bias)
      : problem_(problem),
        windows_(problem),
        bias_(bias),
        inputs_(problem.W.shape(1)),
        outputs_(problem.W.shape(0) / groups()) {}

  void run() const {
    // Each product reads all weights, and what it adds to should be in the cache.
    constexpr std::int64_t kNumbers = 1 << 18, kLeast = 384;
    const bool joins = windows_.are_pixels() && groups() == 1 && !bias_.defined();
    const std::int64_t all = windows_.positions();
    const std::int64_t row = groups() * (windows_.numbers() + outputs_);
    const std::int64_t step = joins ? all : std::min(all, std::max(kLeast, kNumbers / row));
    switch (problem_.pass) {
      case Pass::forward:
        return forward(step);
      case Pass::input_grad:
        return input_grad(step);
      case Pass::weight_grad:
        return weight_grad(step);
    }
  }

 private:
  std::int64_t groups() const { return windows_.groups(); }

  // Calls body(first position, count) until all positions are covered.
  template <class Body>
  void in_steps(std::int64_t step, const Body& body) const {
    const std::int64_t all = windows_.positions();
    for (std::int64_t i = 0; i < all; i += step) body(i, std::min(step, all - i));
  }

  // (groups, count, channels of a group) of a dense image's positions.
  Array rows_of(const Array& image, std::int64_t first, std::int64_t count) const {
    const std::int64_t channels = image.shape(image.ndim() - 1);
    const Array rows =
        reshape_view(image, {image.size() / channels, groups(), channels / groups()});
    return transpose_view(slice_view(rows, 0, first, count), {1, 0, 2});
  }

  // W as (groups, channels of y, kernel offsets, channels of x), a view; W is dense.
  Array as_matrices(const Array& W) const {
    const std::int64_t offsets = windows_.numbers() / inputs_;
    return transpose_view(reshape_view(W, {groups(), outputs_, inputs_, offsets}), {0, 1, 3, 2});
  }
  // (groups, channels of y, kernel offsets and channels of x)
  Array weights() const {
    return reshape_view(contiguous(as_matrices(contiguous(problem_.W))),
                        {groups(), outputs_, windows_.numbers()});
  }

  // (groups, count, kernel offsets and channels)
  Array columns_for(std::int64_t count) const {
    return empty({groups(), count, windows_.numbers()}, dtype_of<T>);
  }

  void im2col(const Array& x, std::int64_t first, std::int64_t count, const Array& columns) const {
    const T* const from = x.as<const T>();
    T* const to = columns.as<T>();
    parallel_for(count, columns.size() / count, [&](std::int64_t begin, std::int64_t end) {
      windows_.for_each_run(first + begin, first + end, first, count,
                            [&](std::int64_t, const Run& run) {
                              T* const at = to + run.column;
                              std::fill_n(at, run.before, T(0));
                              std::copy_n(from + run.pixel, run.inside, at + run.before);
                              std::fill_n(at + run.before + run.inside, run.after, T(0));
                            });
    });
  }

  // Adds the columns to what they were read from. Threads write to rows of their own.
  void col2im(const Array& columns, std::int64_t first, std::int64_t count, const Array& x) const {
    const T* const from = columns.as<const T>();
    T* const to = x.as<T>();
    const auto [lowest, highest] = windows_.rows_read(first, first + count);
    parallel_for(highest - lowest, columns.size() / (highest - lowest),
                 [&, lowest = lowest](std::int64_t begin, std::int64_t end) {
                   windows_.for_each_run(first, first + count, first, count,
                                         [&](std::int64_t row, const Run& run) {
                                           if (row < lowest + begin || row >= lowest + end) return;
                                           const T* const numbers = from + run.column + run.before;
                                           T* const at = to + run.pixel;
                                           for (std::int64_t i = 0; i < run.inside; ++i)
                                             at[i] += numbers[i];
                                         });
                 });
  }

  // c (+)= a b. Where c is not row-major, as a part of the groups of an image, through a copy.
  static void multiply(const Array& a, const Array& b, const Array& c, bool accumulate) {
    const auto single = [](const Array& x) { return x.shape(0) == 1 ? select_view(x, 0, 0) : x; };
    const Array to = single(c);
    const Array product = to.is_contiguous() ? to
                          : accumulate       ? contiguous(to)
                                             : empty(to.shape(), to.dtype());
    matmul_kernels.on(c.device()).matmul(single(a), single(b), product, {{}, accumulate}, nullptr);
    if (!to.is_contiguous()) copy(product, to);
  }

  // Fills rows of the result with the bias, if there is one.
  bool begin(const Array& rows) const {
    if (!bias_.defined()) return false;
    const Array numbers = reshape_view(bias_, {groups(), 1, bias_.size() / groups()});
    copy(broadcast_view("convolution", numbers, rows.shape()), rows);
    return true;
  }

  // What positions read: in the image itself, or in a copy.
  Array rows_read(const Array& x, std::int64_t first, std::int64_t count,
                  const Array& columns) const {
    if (!columns.defined()) return rows_of(x, first, count);
    const Array some = count == columns.shape(1) ? columns : columns_for(count);
    im2col(x, first, count, some);
    return some;
  }

  void forward(std::int64_t step) const {
    const Array x = dense_channels_last(problem_.x);
    const ChannelsLastOutput output(problem_.y);
    const Array weights = transpose_view(this->weights(), {0, 2, 1});
    const Array columns = windows_.are_pixels() ? Array() : columns_for(step);
    in_steps(step, [&](std::int64_t first, std::int64_t count) {
      const Array to = rows_of(output.dense(), first, count);
      const bool accumulate = begin(to);
      multiply(rows_read(x, first, count, columns), weights, to, accumulate);
    });
    output.finish();
  }

  void input_grad(std::int64_t step) const {
    const Array gy = dense_channels_last(problem_.y);
    const ChannelsLastOutput output(problem_.x);
    const Array& gx = output.dense();
    const Array weights = this->weights();
    const std::int64_t all = gx.size() / gx.shape(gx.ndim() - 1);
    const bool has_bias = begin(rows_of(gx, 0, all));
    if (!has_bias && !windows_.are_pixels()) fill(gx, 0);
    in_steps(step, [&](std::int64_t first, std::int64_t count) {
      const Array from = rows_of(gy, first, count);
      if (windows_.are_pixels()) {
        return multiply(from, weights, rows_of(gx, first, count), has_bias);
      }
      const Array columns = columns_for(count);
      multiply(from, weights, columns, false);
      col2im(columns, first, count, gx);
    });
    output.finish();
  }

  void weight_grad(std::int64_t step) const {
    const Array x = dense_channels_last(problem_.x), gy = dense_channels_last(problem_.y);
    const Array sums = empty({groups(), outputs_, windows_.numbers()}, dtype_of<T>);
    const Array columns = windows_.are_pixels() ? Array() : columns_for(step);
    in_steps(step, [&](std::int64_t first, std::int64_t count) {
      const Array grads = transpose_view(rows_of(gy, first, count), {0, 2, 1});
      multiply(grads, rows_read(x, first, count, columns), sums, first > 0);
    });
    const Array gW = as_matrices(problem_.W);
    copy(reshape_view(sums, gW.shape()), gW);
  }

  const Problem& problem_;
  const Windows windows_;
  const Array bias_;
  const std::int64_t inputs_, outputs_;  // channels of x and of y in a group
};

// Whether windows do not overlap: each number of x is copied once at most.
bool are_apart(const Problem& problem) {
  const auto& [stride, pad, dilate, groups] = problem.window;
  const Dims axes = Dims::filled(stride.size(), 1);
  return stride == spatial_extents(problem.W) && dilate == axes && groups == 1;
}

// Whether oneDNN's gradients step over pixels: those of dilated windows at step 2, and of windows
// at larger steps, whose weight gradients in volumes are as fast as others.
bool step_over_pixels(const Problem& problem) {
  const auto& [stride, pad, dilate, groups] = problem.window;
  const bool is_volume = stride.size() > 2 && problem.pass == Pass::weight_grad;
  for (int axis = 0; axis < stride.size(); ++axis) {
    if ((stride[axis] > 2 && !is_volume) || (stride[axis] == 2 && dilate[axis] > 1)) return true;
  }
  return false;
}

// Whether a weight gradient has so few outputs that oneDNN's kernels leave vectors almost empty,
// and inputs enough for products.
bool has_few_outputs(const Problem& problem) {
  constexpr std::int64_t kFew = 3, kFewestInputs = 96, kMostOffsets = 27;
  const Array& W = problem.W;
  return problem.pass == Pass::weight_grad && W.shape(0) <= kFew && W.shape(1) >= kFewestInputs &&
         spatial_extents(W).product() <= kMostOffsets;
}

// With AVX-512, oneDNN takes up to three times as long for gradients of large windows that do not
// overlap, such as the patches of a vision Transformer, and for those above; others were slower
// this way or have not been compared.
double cost(const Problem& problem) {
  constexpr std::int64_t kFewestNumbers = 64, kFewestOutputs = 64, kVector = 16;
  const bool of_weights = problem.pass == Pass::weight_grad;
  const std::int64_t outputs = problem.W.shape(0), numbers = problem.W.size() / outputs;
  const bool are_patches =
      are_apart(problem) && numbers >= (of_weights ? 192 : 512) && outputs >= kFewestOutputs;
  const bool are_slow = step_over_pixels(problem) && numbers >= kFewestNumbers &&
                        (of_weights || (problem.W.shape(1) > kVector && outputs >= kVector));
  const bool is_faster = problem.pass != Pass::forward && simd::has_avx512() &&
                         problem.window.groups == 1 && problem.arithmetic == Arithmetic::float32 &&
                         (are_patches || are_slow || has_few_outputs(problem));
  return is_faster ? no_cost(problem) : highest_cost(problem);
}

bool supports(const Problem& problem) {
  return problem.x.dtype() == Dtype::float32 || problem.x.dtype() == Dtype::float64;
}

void run(const Problem& problem, const Epilogue& epilogue) {
  problem.x.dtype() == Dtype::float64 ? Im2col<double>(problem, epilogue.bias).run()
                                      : Im2col<float>(problem, epilogue.bias).run();
}

}  // namespace

constinit const Algorithm kIm2col{
    .name = "im2col", .supports = supports, .cost = cost, .run = run, .adds_bias = true};

}  // namespace renga::convolution
