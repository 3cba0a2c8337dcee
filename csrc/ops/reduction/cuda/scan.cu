#include "ops/reduction/scan.h"
#include "tensor/elements.cu.h"

namespace renga {
namespace {

// A thread goes along a line, of which it gets the first elements of y, b and a.
template <class T>
struct Recur {
  std::int64_t n;
  bool adds;
  std::int64_t steps[3];
  __device__ void operator()(std::byte* const* at) const {
    std::byte *y = at[0], *b = at[1], *a = at[2];
    Compute<T> total = cuda::load<T>(b);
    cuda::store<T>(y, total);
    for (std::int64_t i = 1; i < n; ++i, a += steps[2]) {
      const auto more = adds ? cuda::load<T>(b += steps[1]) : Compute<T>(-0.0);
      total = cuda::load<T>(a) * total + more;
      cuda::store<T>(y += steps[0], total);
    }
  }
};

void recur_cuda(const Array& a, const Array& b, int axis, bool reverse, const Array& y) {
  const std::int64_t n = y.shape(axis);
  if (n <= 1) return copy(b, y);
  const auto first_of = [=](const Array& x) {
    return select_view(x, axis, reverse ? x.shape(axis) - 1 : 0);
  };
  const auto step_of = [=](const Array& x) { return (reverse ? -1 : 1) * x.strides()[axis]; };
  const Array ys = first_of(y), bs = first_of(b), as = first_of(a);
  visit_dtype(y.dtype(), [&]<class T>(Type<T>) {
    if constexpr (is_floating<T>) {
      const bool adds = b.shape(axis) > 1;
      cuda::for_each_element<3>({&ys, &bs, &as},
                                Recur<T>{n, adds, {step_of(y), step_of(b), step_of(a)}});
    }
  });
}

[[maybe_unused]] const bool registered = scan_kernels.add(cuda::number(), {recur_cuda});

}  // namespace
}  // namespace renga
