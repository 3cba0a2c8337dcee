#include "ops/reduction/scan.h"

#include "devices/gil_release.h"
#include "simd/dispatch.h"
#include "simd/vector.h"
#include "tensor/convert.h"
#include "tensor/strided_loop.h"

namespace renga {
namespace {

// The operands y, b and a of some lines: where they begin, and bytes from line to line and from
// element to element.
struct Lines {
  std::byte* data[3];
  std::int64_t line_steps[3], steps[3];
};

// `count` lines of n elements, together: each line's elements depend on each other.
template <class T, int count>
void recur_lines(const Lines& lines, std::int64_t n) {
  using C = Compute<T>;
  std::byte *y = lines.data[0], *b = lines.data[1], *a = lines.data[2];
  const auto& apart = lines.line_steps;
  C totals[count];
  for (int j = 0; j < count; ++j) {
    const T first = *reinterpret_cast<const T*>(b + j * apart[1]);
    totals[j] = static_cast<C>(first);
    *reinterpret_cast<T*>(y + j * apart[0]) = first;
  }
  for (std::int64_t i = 1; i < n; ++i, a += lines.steps[2]) {
    y += lines.steps[0];
    b += lines.steps[1];
#pragma GCC ivdep
    for (int j = 0; j < count; ++j) {
      totals[j] = static_cast<C>(*reinterpret_cast<const T*>(a + j * apart[2])) * totals[j] +
                  static_cast<C>(*reinterpret_cast<const T*>(b + j * apart[1]));
      *reinterpret_cast<T*>(y + j * apart[0]) = T(totals[j]);
    }
  }
}

// So many lines that adjoin, in vectors; a may repeat one number for all of them.
constexpr int kAdjoiningLines = 64;
template <class T>
void recur_columns(const Lines& lines, std::int64_t n) {
  simd::dispatch_for<T>([ =, &lines ](auto target) __attribute__((always_inline)) {
    using V = simd::Vector<decltype(target), Compute<T>>;
    constexpr int width = V::width;
    const auto at = [&](int operand, std::int64_t i) __attribute__((always_inline)) {
      return reinterpret_cast<T*>(lines.data[operand] + i * lines.steps[operand]);
    };
    const bool repeats = lines.line_steps[2] == 0;
    V totals[kAdjoiningLines / width];
    for (std::int64_t i = 0; i < n; ++i) {
      const T* const b = at(1, i);
      const T* const a = at(2, std::max<std::int64_t>(i - 1, 0));
      T* const y = at(0, i);
      const V factor(i > 0 && repeats ? static_cast<Compute<T>>(*a) : Compute<T>(0));
#pragma GCC unroll 16
      for (int k = 0; k < kAdjoiningLines / width; ++k) {
        const V more(V::load(b + k * width));
        if (i == 0) {
          totals[k] = more;
        } else {
          totals[k] = (repeats ? factor : V(V::load(a + k * width))) * totals[k] + more;
        }
        V::store(totals[k], y + k * width);
      }
    }
  });
}

template <class T>
void recur(const Array& a, const Array& b, int axis, bool reverse, const Array& y) {
  const std::int64_t n = y.shape(axis);
  const auto first_of = [=](const Array& x) {
    return select_view(x, axis, reverse ? x.shape(axis) - 1 : 0);
  };
  const Array ys = first_of(y), bs = first_of(b), as = first_of(a);
  Lines lines;
  const Array* operands[] = {&y, &b, &a};
  for (int k = 0; k < 3; ++k) {
    const std::int64_t step = operands[k]->strides()[axis];
    lines.steps[k] = reverse ? -step : step;
  }
  parallel_walk(make_loop<3>({&ys, &bs, &as}), 2 * n,
                [&](std::int64_t m, const auto& p, const auto& s) {
                  Lines at = lines;
                  for (int k = 0; k < 3; ++k) at.line_steps[k] = s[k];
                  const bool adjoin =
                      s[0] == sizeof(T) && s[1] == sizeof(T) && (s[2] == sizeof(T) || s[2] == 0);
                  for (std::int64_t j = 0; j < m;) {
                    for (int k = 0; k < 3; ++k) at.data[k] = p[k] + j * s[k];
                    const bool is_vector = adjoin && m - j >= kAdjoiningLines;
                    const int count = is_vector ? kAdjoiningLines : (m - j >= 8 ? 8 : 1);
                    const auto recur_all = is_vector    ? recur_columns<T>
                                           : count == 8 ? recur_lines<T, 8>
                                                        : recur_lines<T, 1>;
                    recur_all(at, n);
                    j += count;
                  }
                });
}

void recur_cpu(const Array& a, const Array& b, int axis, bool reverse, const Array& y) {
  if (y.shape(axis) <= 1) return copy(b, y);
  const GilRelease work(y.size());
  visit_dtype(y.dtype(), [&]<class T>(Type<T>) {
    if constexpr (is_floating<T>) recur<T>(a, b, axis, reverse, y);
  });
}

[[maybe_unused]] const bool registered = scan_kernels.add(0, {recur_cpu});

}  // namespace
}  // namespace renga
