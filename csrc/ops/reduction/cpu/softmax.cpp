#include "ops/reduction/softmax.h"

#include "devices/gil_release.h"
#include "ops/reduction/cpu/softmax_joined.h"
#include "ops/reduction/cpu/softmax_row.h"

namespace renga {
namespace {

template <class T>
void softmax_along(const Array& x, int axis, bool log, const Array& y) {
  const std::int64_t n = x.shape(axis);
  const bool by_columns = suits_columns<T>(x, axis);
  if constexpr (std::is_same_v<T, Compute<T>>) {
    if (joins_rows<T>(axis, std::array{&x, &y})) {
      const std::int64_t m = x.strides()[axis] / x.itemsize();
      return for_each_place(n, m, x.size() / (n * m), [&](std::int64_t at) {
        softmax_of_joined_rows<T>(x.as<T>() + at, n, m, log, y.as<T>() + at);
      });
    }
  }
  const Array xs = select_view(x, axis, 0), ys = select_view(y, axis, 0);
  parallel_walk(
      make_loop<2>({&ys, &xs}), 10 * n, [&](std::int64_t m, const auto& p, const auto& s) {
        if (by_columns) {
          ColumnBuffer<T> to(y.strides()[axis], s[0], n);
          ColumnBuffer<T> from(x.strides()[axis], s[1], n);
          return for_column_blocks(m, [&](std::int64_t j, std::int64_t count) {
            std::byte* const columns = p[0] + j * s[0];
            softmax_of_columns(from.read(p[1] + j * s[1], count), n, log, to.at(columns, count));
            to.write(columns, count);
          });
        }
        RowBuffer<T> to(y.strides()[axis], n), from(x.strides()[axis], n);
        for (std::int64_t j = 0; j < m; ++j) {
          std::byte* const row = p[0] + j * s[0];
          softmax_row(from.read(p[1] + j * s[1]), n, log, to.at(row));
          to.write(row);
        }
      });
}

template <class T>
void softmax_grad_along(const Array& y, const Array& gy, int axis, bool log, const Array& gx) {
  const std::int64_t n = y.shape(axis);
  const bool by_columns = suits_columns<T>(y, axis);
  if constexpr (std::is_same_v<T, Compute<T>>) {
    if (joins_rows<T>(axis, std::array{&y, &gy, &gx})) {
      const std::int64_t m = y.strides()[axis] / y.itemsize();
      return for_each_place(n, m, y.size() / (n * m), [&](std::int64_t at) {
        softmax_grad_of_joined_rows<T>(y.as<T>() + at, gy.as<T>() + at, n, m, log, gx.as<T>() + at);
      });
    }
  }
  const Array ys = select_view(y, axis, 0), gys = select_view(gy, axis, 0);
  const Array gxs = select_view(gx, axis, 0);
  parallel_walk(make_loop<3>({&gxs, &ys, &gys}), (log ? 10 : 3) * n,
                [&](std::int64_t m, const auto& p, const auto& s) {
                  if (by_columns) {
                    ColumnBuffer<T> to(gx.strides()[axis], s[0], n);
                    ColumnBuffer<T> from(y.strides()[axis], s[1], n);
                    ColumnBuffer<T> grad(gy.strides()[axis], s[2], n);
                    return for_column_blocks(m, [&](std::int64_t j, std::int64_t count) {
                      std::byte* const columns = p[0] + j * s[0];
                      softmax_grad_of_columns(from.read(p[1] + j * s[1], count),
                                              grad.read(p[2] + j * s[2], count), n, log,
                                              to.at(columns, count));
                      to.write(columns, count);
                    });
                  }
                  if constexpr (is_half<T>) {
                    const auto adjoin = [axis](const Array& v) {
                      return v.strides()[axis] == v.itemsize();
                    };
                    if (adjoin(y) && adjoin(gy) && adjoin(gx)) {
                      for (std::int64_t j = 0; j < m; ++j) {
                        softmax_grad_row(reinterpret_cast<const T*>(p[1] + j * s[1]),
                                         reinterpret_cast<const T*>(p[2] + j * s[2]), n, log,
                                         reinterpret_cast<T*>(p[0] + j * s[0]));
                      }
                      return;
                    }
                  }
                  RowBuffer<T> to(gx.strides()[axis], n);
                  RowBuffer<T> from(y.strides()[axis], n), grad(gy.strides()[axis], n);
                  for (std::int64_t j = 0; j < m; ++j) {
                    std::byte* const row = p[0] + j * s[0];
                    softmax_grad_row(from.read(p[1] + j * s[1]), grad.read(p[2] + j * s[2]), n, log,
                                     to.at(row));
                    to.write(row);
                  }
                });
}

// top + shift. Infinities, whose difference from the maximum is NaN, are the result themselves,
// unless there is a NaN.
template <class C>
C log_sum(C top, C shift, const C* x, std::int64_t step, std::int64_t n) {
  if (!std::isinf(top)) return top + shift;
  for (std::int64_t i = 0; i < n; ++i) {
    if (std::isnan(x[i * step])) return x[i * step];
  }
  return top;
}

template <class T>
void logsumexp_along(const Array& x, int axis, const Array& y) {
  using C = Compute<T>;
  using Result = std::conditional_t<std::is_same_v<T, bfloat16>, float, T>;
  const std::int64_t n = x.shape(axis);
  const bool by_columns = suits_columns<T>(x, axis);
  const Array xs = select_view(x, axis, 0);
  parallel_walk(make_loop<2>({&y, &xs}), 5 * n, [&](std::int64_t m, const auto& p, const auto& s) {
    const auto store = [&](std::int64_t j, C v) {
      *reinterpret_cast<Result*>(p[0] + j * s[0]) = Result(v);
    };
    if (by_columns) {
      ColumnBuffer<T> from(x.strides()[axis], s[1], n);
      return for_column_blocks(m, [&](std::int64_t j, std::int64_t count) {
        const Columns<const C> columns = from.read(p[1] + j * s[1], count);
        const ColumnNormalizers<C> all = column_normalizers(columns, n);
        for (std::int64_t k = 0; k < count; ++k) {
          store(j + k, log_sum(all.tops[k], all.shifts[k], columns.data + k, columns.step, n));
        }
      });
    }
    RowBuffer<T> from(x.strides()[axis], n);
    for (std::int64_t j = 0; j < m; ++j) {
      const C* const row = from.read(p[1] + j * s[1]);
      const SoftmaxNormalizer<C> normalizer = softmax_normalizer(row, n);
      store(j, log_sum(normalizer.top, normalizer.shift, row, 1, n));
    }
  });
}

void logsumexp_cpu(const Array& x, int axis, const Array& y) {
  if (x.size() == 0) return fill(y, -std::numeric_limits<double>::infinity());
  const GilRelease work(x.size());
  visit_dtype(x.dtype(), [&]<class T>(Type<T>) {
    if constexpr (is_floating<T>) logsumexp_along<T>(x, axis, y);
  });
}

void softmax_cpu(const Array& x, int axis, bool log, const Array& y) {
  if (x.size() == 0) return;
  const GilRelease work(x.size());
  visit_dtype(x.dtype(), [&]<class T>(Type<T>) {
    if constexpr (is_floating<T>) softmax_along<T>(x, axis, log, y);
  });
}

void softmax_grad_cpu(const Array& y, const Array& gy, int axis, bool log, const Array& gx) {
  if (y.size() == 0) return;
  const GilRelease work(y.size());
  visit_dtype(y.dtype(), [&]<class T>(Type<T>) {
    if constexpr (is_floating<T>) softmax_grad_along<T>(y, gy, axis, log, gx);
  });
}

[[maybe_unused]] const bool registered =
    softmax_kernels.add(0, {softmax_cpu, softmax_grad_cpu, logsumexp_cpu});

}  // namespace
}  // namespace renga
