#include "ops/reduction/softmax.h"

#include <vector>

#include "devices/gil_release.h"
#include "ops/reduction/cpu/softmax_row.h"

namespace renga {
namespace {

template <class T>
void softmax_rows(const Array& x, int axis, bool log, const Array& y) {
  const std::int64_t n = x.shape(axis), from_step = x.strides()[axis], to_step = y.strides()[axis];
  if (n == 0) return;
  const Array xs = select_view(x, axis, 0), ys = select_view(y, axis, 0);
  parallel_walk(make_loop<2>({&ys, &xs}), 10 * n,
                [&](std::int64_t m, const auto& p, const auto& s) {
                  std::vector<Compute<T>> row(static_cast<std::size_t>(n)), terms(row.size());
                  for (std::int64_t j = 0; j < m; ++j) {
                    simd::gather<T>(p[1] + j * s[1], from_step, n, row.data());
                    softmax_row(row.data(), n, log, terms.data());
                    simd::scatter<T>(row.data(), p[0] + j * s[0], to_step, n);
                  }
                });
}

void softmax_cpu(const Array& x, int axis, bool log, const Array& y) {
  const GilRelease work(x.size());
  visit_dtype(x.dtype(), [&]<class T>(Type<T>) {
    if constexpr (is_floating<T>) softmax_rows<T>(x, axis, log, y);
  });
}

[[maybe_unused]] const bool registered = softmax_kernels.add(0, {softmax_cpu});

}  // namespace
}  // namespace renga
