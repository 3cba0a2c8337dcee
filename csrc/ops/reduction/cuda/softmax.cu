#include "ops/reduction/cuda/softmax_row.cu.h"
#include "ops/reduction/softmax.h"

namespace renga {
namespace {

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

[[maybe_unused]] const bool registered = softmax_kernels.add(cuda::number(), {softmax_cuda});

}  // namespace
}  // namespace renga
