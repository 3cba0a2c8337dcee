#include "ops/reduction/cuda/softmax_row.cu.h"
#include "ops/reduction/softmax.h"

namespace renga {
namespace {

// Bytes from an element to the next along the axis.
struct Steps {
  std::int64_t gx, y, gy;
};

// `rows` points at the first elements of y and x along the axis.
template <class T>
__global__ void softmax_rows(cuda::ElementLoop<2> rows, std::int64_t n, std::int64_t to_step,
                             std::int64_t from_step, bool log, cuda::FoldGrid grid) {
  using C = Compute<T>;
  for (cuda::FoldThread thread(grid); thread.any_left(rows.size); thread.result += thread.step) {
    std::byte* p[2] = {};
    const bool is_used = thread.result < rows.size;
    if (is_used) rows.locate(thread.result, p);
    const cuda::Row<T> x{p[1], is_used ? n : 0, from_step};
    const cuda::SoftmaxTotals<T> totals = cuda::softmax_totals(thread, x);
    const C shift = static_cast<C>(std::log(totals.total)),
            scale = static_cast<C>(1 / totals.total);
    for (std::int64_t i = thread.row; i < x.n; i += thread.rows) {
      const C v = x.at(i) - totals.top;
      cuda::store<T>(p[0] + i * to_step, log ? v - shift : std::exp(v) * scale);
    }
  }
}

void softmax_cuda(const Array& x, int axis, bool log, const Array& y) {
  if (x.size() == 0) return;
  const std::int64_t n = x.shape(axis), step = x.strides()[axis];
  const Array ys = select_view(y, axis, 0), xs = select_view(x, axis, 0);
  const auto rows = cuda::make_element_loop<2>({&ys, &xs});
  const auto grid = cuda::row_grid(rows, 1, n, step);
  visit_dtype(x.dtype(), [&]<class T>(Type<T>) {
    if constexpr (is_floating<T>) {
      cuda::launch(x.device(), grid.grid(sizeof(double)), softmax_rows<T>, rows, n,
                   y.strides()[axis], step, log, grid);
    }
  });
}

// gx = y (gy - sum(y gy)), or gy - e^y sum(gy) where y is the logarithm. `rows` points at the first
// elements of gx, y and gy along the axis.
template <class T>
__global__ void softmax_grad_rows(cuda::ElementLoop<3> rows, std::int64_t n, Steps steps, bool log,
                                  cuda::FoldGrid grid) {
  using C = Compute<T>;
  for (cuda::FoldThread thread(grid); thread.any_left(rows.size); thread.result += thread.step) {
    std::byte* p[3] = {};
    const bool is_used = thread.result < rows.size;
    if (is_used) rows.locate(thread.result, p);
    const cuda::Row<T> y{p[1], is_used ? n : 0, steps.y}, gy{p[2], y.n, steps.gy};
    double sum = 0;
    for (std::int64_t i = thread.row; i < y.n; i += thread.rows) {
      sum += static_cast<double>(log ? gy.at(i) : y.at(i) * gy.at(i));
    }
    const C total =
        static_cast<C>(cuda::fold_threads(thread, sum, [](double a, double b) { return a + b; }));
    for (std::int64_t i = thread.row; i < y.n; i += thread.rows) {
      const C v = y.at(i), g = gy.at(i);
      cuda::store<T>(p[0] + i * steps.gx, log ? g - std::exp(v) * total : v * (g - total));
    }
  }
}

void softmax_grad_cuda(const Array& y, const Array& gy, int axis, bool log, const Array& gx) {
  if (y.size() == 0) return;
  const std::int64_t n = y.shape(axis);
  const Array gxs = select_view(gx, axis, 0), ys = select_view(y, axis, 0);
  const Array gys = select_view(gy, axis, 0);
  const auto rows = cuda::make_element_loop<3>({&gxs, &ys, &gys});
  const Steps steps{gx.strides()[axis], y.strides()[axis], gy.strides()[axis]};
  const auto grid = cuda::row_grid(rows, 1, n, steps.y);
  visit_dtype(y.dtype(), [&]<class T>(Type<T>) {
    if constexpr (is_floating<T>) {
      cuda::launch(y.device(), grid.grid(sizeof(double)), softmax_grad_rows<T>, rows, n, steps, log,
                   grid);
    }
  });
}

// `rows` points at results and at the first elements of x along the axis.
template <class T>
__global__ void logsumexp_rows(cuda::ElementLoop<2> rows, std::int64_t n, std::int64_t step,
                               cuda::FoldGrid grid) {
  using C = Compute<T>;
  using Result = std::conditional_t<std::is_same_v<T, bfloat16>, float, T>;
  for (cuda::FoldThread thread(grid); thread.any_left(rows.size); thread.result += thread.step) {
    std::byte* p[2] = {};
    const bool is_used = thread.result < rows.size;
    if (is_used) rows.locate(thread.result, p);
    const cuda::SoftmaxTotals<T> totals =
        cuda::softmax_totals(thread, cuda::Row<T>{p[1], is_used ? n : 0, step});
    if (!is_used || thread.row != 0) continue;
    // The maximum is NaN if an element is; the difference of two infinities would be, too.
    const C shift = std::isinf(totals.top) ? C(0) : static_cast<C>(std::log(totals.total));
    cuda::store<Result>(p[0], totals.top + shift);
  }
}

void logsumexp_cuda(const Array& x, int axis, const Array& y) {
  if (x.size() == 0) return fill(y, -std::numeric_limits<double>::infinity());
  const std::int64_t n = x.shape(axis), step = x.strides()[axis];
  const Array xs = select_view(x, axis, 0);
  const auto rows = cuda::make_element_loop<2>({&y, &xs});
  const auto grid = cuda::row_grid(rows, 1, n, step);
  visit_dtype(x.dtype(), [&]<class T>(Type<T>) {
    if constexpr (is_floating<T>) {
      cuda::launch(x.device(), grid.grid(sizeof(double)), logsumexp_rows<T>, rows, n, step, grid);
    }
  });
}

[[maybe_unused]] const bool registered =
    softmax_kernels.add(cuda::number(), {softmax_cuda, softmax_grad_cuda, logsumexp_cuda});

}  // namespace
}  // namespace renga
