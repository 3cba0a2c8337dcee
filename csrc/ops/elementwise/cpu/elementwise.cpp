#include "ops/elementwise/elementwise.h"

#include "devices/gil_release.h"
#include "ops/elementwise/cpu/kernels.h"
#include "tensor/strided_loop.h"

namespace renga {
namespace {

// y[i] = condition[i] ? a[i] : b[i] for adjoining elements; a step of 0 repeats one element. The
// compiler makes vectors of it, but not if the condition is a bool.
template <int a_step, int b_step, class T>
void select_run(const std::uint8_t* condition, const T* a, const T* b, T* __restrict y,
                std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    const T first = a[a_step * i], second = b[b_step * i];
    y[i] = condition[i] != 0 ? first : second;
  }
}

// T is any type of the elements' size: they are only copied.
template <class T>
void select_loop(const Array& condition, const Array& a, const Array& b, const Array& y) {
  const auto loop = make_loop<4>({&y, &condition, &a, &b});
  parallel_walk(loop, 2, [](std::int64_t n, const auto& p, const auto& s) {
    constexpr std::int64_t item = sizeof(T);
    const bool adjoin =
        s[0] == item && s[1] == 1 && (s[2] == item || s[2] == 0) && (s[3] == item || s[3] == 0);
    if (adjoin) {
      const auto run = s[2] == 0 ? (s[3] == 0 ? select_run<0, 0, T> : select_run<0, 1, T>)
                                 : (s[3] == 0 ? select_run<1, 0, T> : select_run<1, 1, T>);
      return run(reinterpret_cast<const std::uint8_t*>(p[1]), reinterpret_cast<const T*>(p[2]),
                 reinterpret_cast<const T*>(p[3]), reinterpret_cast<T*>(p[0]), n);
    }
    for (std::int64_t i = 0; i < n; ++i) {
      const bool first = *reinterpret_cast<const bool*>(p[1] + i * s[1]);
      const std::byte* from = first ? p[2] + i * s[2] : p[3] + i * s[3];
      *reinterpret_cast<T*>(p[0] + i * s[0]) = *reinterpret_cast<const T*>(from);
    }
  });
}

void select_cpu(const Array& condition, const Array& a, const Array& b, const Array& y) {
  const GilRelease work(y.size());
  visit_bits(y.itemsize(), [&]<class T>(Type<T>) { select_loop<T>(condition, a, b, y); });
}

[[maybe_unused]] const bool registered = elementwise_kernels.add(
    0, {elementwise_cpu::unary, elementwise_cpu::binary, elementwise_cpu::quaternary, select_cpu});

}  // namespace
}  // namespace renga
