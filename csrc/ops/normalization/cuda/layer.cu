#include <cmath>

#include "ops/normalization/cuda/two_sums.cu.h"
#include "ops/normalization/layer.h"

namespace renga {
namespace {

// The operands of T, of which vectors and statistics are computed in S.
template <class T, class S = Compute<T>>
struct Rows {
  const T* x;
  const S *gamma, *beta;  // beta may be nullptr: then means are 0
  std::int64_t count, columns;
  S eps;
};

template <class T>
Rows<T> rows_of(const RowNormalization& n) {
  using S = Compute<T>;
  return {
      n.x.as<const T>(), n.gamma.as<const S>(), n.beta.defined() ? n.beta.as<const S>() : nullptr,
      n.x.shape(0),      n.x.shape(1),          static_cast<S>(n.eps)};
}

struct Add {
  __device__ double operator()(double a, double b) const { return a + b; }
};

// The mean over the columns of a row of term(i); all threads of the block call this.
template <class Term>
__device__ double mean_of_row(const cuda::FoldThread& thread, bool is_used, std::int64_t columns,
                              const Term& term) {
  double total = 0;
  for (std::int64_t i = thread.row; is_used && i < columns; i += thread.rows) total += term(i);
  return cuda::fold_threads(thread, total, Add{}) / static_cast<double>(columns);
}

template <class T, class S>
__global__ void normalize_rows(Rows<T> rows, T* y, S* mean, S* inv_std, cuda::FoldGrid grid) {
  for (cuda::FoldThread thread(grid); thread.any_left(rows.count); thread.result += thread.step) {
    const bool is_used = thread.result < rows.count;
    const std::int64_t first = is_used ? thread.result * rows.columns : 0;
    const auto x = [&](std::int64_t i) { return static_cast<S>(rows.x[first + i]); };
    S centre = 0;
    if (rows.beta != nullptr) {
      centre = static_cast<S>(
          mean_of_row(thread, is_used, rows.columns, [&](std::int64_t i) { return double(x(i)); }));
    }
    const double square = mean_of_row(thread, is_used, rows.columns, [&](std::int64_t i) {
      const S d = x(i) - centre;
      return double(d) * double(d);
    });
    const S scale = static_cast<S>(1 / std::sqrt(square + static_cast<double>(rows.eps)));
    for (std::int64_t i = thread.row; is_used && i < rows.columns; i += thread.rows) {
      const S v = (x(i) - centre) * scale * rows.gamma[i];
      y[first + i] = T(rows.beta != nullptr ? v + rows.beta[i] : v);
    }
    if (!is_used || thread.row != 0) continue;
    mean[thread.result] = centre;
    inv_std[thread.result] = scale;
  }
}

template <class T, class S>
__global__ void input_grad(Rows<T> rows, const S* mean, const S* inv_std, const T* gy, T* gx,
                           cuda::FoldGrid grid) {
  for (cuda::FoldThread thread(grid); thread.any_left(rows.count); thread.result += thread.step) {
    const bool is_used = thread.result < rows.count;
    const std::int64_t row = is_used ? thread.result : 0, first = row * rows.columns;
    const S scale = inv_std[row], centre = mean[row];
    const auto normalized = [&](std::int64_t i) {
      return (static_cast<S>(rows.x[first + i]) - centre) * scale;
    };
    const auto g = [&](std::int64_t i) { return static_cast<S>(gy[first + i]) * rows.gamma[i]; };
    const double slope = mean_of_row(thread, is_used, rows.columns, [&](std::int64_t i) {
      return double(g(i)) * double(normalized(i));
    });
    double shift = 0;
    if (rows.beta != nullptr) {
      shift =
          mean_of_row(thread, is_used, rows.columns, [&](std::int64_t i) { return double(g(i)); });
    }
    for (std::int64_t i = thread.row; is_used && i < rows.columns; i += thread.rows) {
      gx[first + i] =
          T(scale * (g(i) - static_cast<S>(shift) - normalized(i) * static_cast<S>(slope)));
    }
  }
}

// The sums over rows, for each column.
template <class T, class S>
struct ParameterGrads {
  Rows<T> rows;
  const S *mean, *inv_std;
  const T* gy;
  S *ggamma, *gbeta;
  __device__ void store(std::int64_t column, const cuda::TwoSums& sums) const {
    ggamma[column] = static_cast<S>(sums.first);
    if (gbeta != nullptr) gbeta[column] = static_cast<S>(sums.second);
  }
};

template <class T, class S>
__global__ void parameter_grads(ParameterGrads<T, S> grads, cuda::FoldGrid grid,
                                cuda::TwoSums* partial) {
  const cuda::FoldThread thread(grid);
  const Rows<T>& rows = grads.rows;
  const std::int64_t step = std::int64_t{grid.parts} * thread.rows;
  cuda::TwoSums sums{0, 0};
  if (thread.result < rows.columns) {
    for (std::int64_t row = thread.part * thread.rows + thread.row; row < rows.count; row += step) {
      const std::int64_t i = row * rows.columns + thread.result;
      const S g = static_cast<S>(grads.gy[i]);
      sums.first +=
          double(g * ((static_cast<S>(rows.x[i]) - grads.mean[row]) * grads.inv_std[row]));
      sums.second += double(g);
    }
  }
  cuda::finish_sums(thread, grid, grads, sums, rows.columns, partial);
}

// A block for each row, or for some of them.
cuda::FoldGrid grid_of_rows(const Array& x) {
  cuda::FoldGrid grid = cuda::fold_grid(x.shape(0), x.shape(1), false);
  grid.parts = 1;
  return grid;
}

void normalize_cuda(const RowNormalization& normalization, const Array& y, const Array& mean,
                    const Array& inv_std) {
  if (y.size() == 0) return;
  const cuda::FoldGrid grid = grid_of_rows(y);
  visit_dtype(y.dtype(), [&]<class T>(Type<T>) {
    if constexpr (is_floating<T>) {
      using S = Compute<T>;
      cuda::launch(y.device(), grid.grid(sizeof(double)), normalize_rows<T, S>,
                   rows_of<T>(normalization), y.as<T>(), mean.as<S>(), inv_std.as<S>(), grid);
    }
  });
}

void gradients_cuda(const RowNormalization& normalization, const Array& mean, const Array& inv_std,
                    const Array& gy, const Array& gx, const Array& ggamma, const Array& gbeta) {
  if (gx.size() == 0) {
    fill(ggamma, 0);
    return gbeta.defined() ? fill(gbeta, 0) : void();
  }
  const cuda::FoldGrid rows = grid_of_rows(gx);
  cuda::FoldGrid columns = cuda::fold_grid(gx.shape(1), gx.shape(0), true);
  columns.parts = cuda::parts_of_sums(columns.blocks, gx.shape(0), columns.rows * 4);
  visit_dtype(gx.dtype(), [&]<class T>(Type<T>) {
    if constexpr (is_floating<T>) {
      using S = Compute<T>;
      const Rows<T> operands = rows_of<T>(normalization);
      cuda::launch(gx.device(), rows.grid(sizeof(double)), input_grad<T, S>, operands,
                   mean.as<const S>(), inv_std.as<const S>(), gy.as<const T>(), gx.as<T>(), rows);
      const ParameterGrads<T, S> grads{
          operands,         mean.as<const S>(), inv_std.as<const S>(),
          gy.as<const T>(), ggamma.as<S>(),     gbeta.defined() ? gbeta.as<S>() : nullptr};
      cuda::launch_sums(gx.device(), columns, grads, gx.shape(1), [&](cuda::TwoSums* partial) {
        cuda::launch(gx.device(), columns.grid(sizeof(cuda::TwoSums)), parameter_grads<T, S>, grads,
                     columns, partial);
      });
    }
  });
}

[[maybe_unused]] const bool registered = row_normalization_kernels.add(
    cuda::number(), {normalize_cuda, gradients_cuda, NoKernel{}, NoKernel{}});

}  // namespace
}  // namespace renga
