#include "ops/reduction/scan.h"

#include <cmath>

#include "devices/gil_release.h"
#include "simd/dispatch.h"
#include "simd/transpose.h"
#include "simd/vector.h"
#include "tensor/convert.h"
#include "tensor/strided_loop.h"

namespace renga {
namespace {

// The operands y, b and a of some lines: where they begin, and bytes from line to line and from
// element to element; and whether b has more than one element. A product plus -0 is the product,
// whatever its sign.
struct Lines {
  std::byte* data[3];
  std::int64_t line_steps[3], steps[3];
  bool adds;
};

// Elements from `begin` to `end` of `count` lines, together: each line's elements depend on each
// other. The totals are those of the elements before, and then the last ones.
template <class T, int count>
void recur_lines(const Lines& lines, std::int64_t begin, std::int64_t end, Compute<T>* totals) {
  using C = Compute<T>;
  const auto& apart = lines.line_steps;
  for (std::int64_t i = begin; i < end; ++i) {
    std::byte* const y = lines.data[0] + i * lines.steps[0];
    const std::byte* const b = lines.data[1] + i * lines.steps[1];
    const std::byte* const a = lines.data[2] + std::max<std::int64_t>(i - 1, 0) * lines.steps[2];
#pragma GCC ivdep
    for (int j = 0; j < count; ++j) {
      const C more = i == 0 || lines.adds
                         ? static_cast<C>(*reinterpret_cast<const T*>(b + j * apart[1]))
                         : C(-0.0);
      // Vectors round once, too.
      totals[j] = i == 0 ? more
                         : std::fma(static_cast<C>(*reinterpret_cast<const T*>(a + j * apart[2])),
                                    totals[j], more);
      *reinterpret_cast<T*>(y + j * apart[0]) = T(totals[j]);
    }
  }
}
template <class T, int count>
void recur_all(const Lines& lines, std::int64_t n) {
  Compute<T> totals[count];
  recur_lines<T, count>(lines, 0, n, totals);
}

// Whether the elements of a line adjoin, forward or backward, or one repeats for all lines.
template <class T>
bool are_tiles(const Lines& lines) {
  const auto adjoin = [&](int operand) { return std::abs(lines.steps[operand]) == sizeof(T); };
  return adjoin(0) && (adjoin(1) || !lines.adds) &&
         (adjoin(2) || (lines.steps[2] == 0 && lines.line_steps[2] == 0));
}

// Smaller squares are not transposed.
constexpr int kLeastTile = 8;

// Runs as many lines as a vector has numbers, by squares that are transposed in registers.
template <class Target, class T>
[[gnu::always_inline]] inline void recur_tiles(const Lines& lines, std::int64_t n) {
  using Elements = simd::Vector<Target, Compute<T>>;
  using V = typename Elements::V;
  constexpr int width = Elements::width;
  Compute<T> last[width];
  recur_lines<T, width>(lines, 0, 1, last);
  V totals = Elements::load(last);
  // The address of `width` elements of a line from i on, which precede i in memory if steps do.
  const auto at = [&](int operand, int line, std::int64_t i) __attribute__((always_inline)) {
    const std::int64_t step = lines.steps[operand], first = step < 0 ? i + width - 1 : i;
    return reinterpret_cast<T*>(lines.data[operand] + line * lines.line_steps[operand] +
                                first * step);
  };
  const bool repeats = lines.steps[2] == 0;
  const V factor = V{} + static_cast<Compute<T>>(*reinterpret_cast<const T*>(lines.data[2]));
  std::int64_t i = 1;
  for (; i + width <= n; i += width) {
    V b[width], a[width];
    for (int j = 0; j < width; ++j) {
      b[j] = lines.adds ? Elements::load(at(1, j, i)) : -V{};
    }
    if (lines.adds) simd::shuffles::transpose(b);
    if (!repeats) {
      for (int j = 0; j < width; ++j) a[j] = Elements::load(at(2, j, i - 1));
      simd::shuffles::transpose(a);
    }
    const auto row = [&](int operand, int k) {
      return lines.steps[operand] < 0 ? width - 1 - k : k;
    };
    V y[width];
    for (int k = 0; k < width; ++k) {
      totals = (repeats ? factor : a[row(2, k)]) * totals + b[row(1, k)];
      y[row(0, k)] = totals;
    }
    simd::shuffles::transpose(y);
    for (int j = 0; j < width; ++j) Elements::store(y[j], at(0, j, i));
  }
  Elements::store(totals, last);
  recur_lines<T, width>(lines, i, n, last);
}

// Lines that adjoin, in vectors; a may repeat one number for all of them. Many of them together
// read and write long runs of memory: their totals stay in the first-level cache.
constexpr int kAdjoiningLines = 64;
constexpr std::int64_t kMostAdjoiningLines = 1024;
template <class T>
void recur_columns(const Lines& lines, std::int64_t n, std::int64_t count) {
  simd::dispatch_for<T>([ =, &lines ](auto target) __attribute__((always_inline)) {
    using C = Compute<T>;
    using V = simd::Vector<decltype(target), C>;
    const auto at = [&](int operand, std::int64_t i) __attribute__((always_inline)) {
      return reinterpret_cast<T*>(lines.data[operand] + i * lines.steps[operand]);
    };
    const bool repeats = lines.line_steps[2] == 0;
    alignas(64) C totals[kMostAdjoiningLines];
    for (std::int64_t j = 0; j < count; j += V::width) {
      const T* const b = at(1, 0);
      const V first = lines.line_steps[1] == 0 ? V(static_cast<C>(*b)) : V(V::load(b + j));
      V::store(first, totals + j);
      V::store(first, at(0, 0) + j);
    }
    for (std::int64_t i = 1; i < n; ++i) {
      const T* const b = at(1, lines.adds ? i : 0);
      const T* const a = at(2, i - 1);
      T* const y = at(0, i);
      const V factor(repeats ? static_cast<C>(*a) : C(0));
#pragma GCC unroll 4
      for (std::int64_t j = 0; j < count; j += V::width) {
        const V more = lines.adds ? V(V::load(b + j)) : -V(C(0));
        const V total = (repeats ? factor : V(V::load(a + j))) * V(V::load(totals + j)) + more;
        V::store(total, totals + j);
        V::store(total, y + j);
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
  lines.adds = b.shape(axis) > 1;
  const Array* operands[] = {&y, &b, &a};
  for (int k = 0; k < 3; ++k) {
    const std::int64_t step = operands[k]->strides()[axis];
    lines.steps[k] = reverse ? -step : step;
  }
  if (!lines.adds) lines.steps[1] = 0;
  parallel_walk(
      make_loop<3>({&ys, &bs, &as}), 2 * n, [&](std::int64_t m, const auto& p, const auto& s) {
        Lines at = lines;
        for (int k = 0; k < 3; ++k) at.line_steps[k] = s[k];
        const auto adjoins = [&](int k) { return s[k] == sizeof(T); };
        const bool adjoin =
            adjoins(0) && (adjoins(1) || (s[1] == 0 && !at.adds)) && (adjoins(2) || s[2] == 0);
        const int floats = simd::has_avx512() ? simd::Avx512::width : simd::Avx2::width;
        const int tile =
            floats * static_cast<int>(sizeof(float)) / static_cast<int>(sizeof(Compute<T>));
        const bool tiled = tile >= kLeastTile && !adjoin && are_tiles<T>(at);
        for (std::int64_t j = 0; j < m;) {
          for (int k = 0; k < 3; ++k) at.data[k] = p[k] + j * s[k];
          if (tiled && m - j >= tile) {
            simd::dispatch_for<T>([&](auto target) __attribute__((always_inline)) {
              using Target = decltype(target);
              constexpr int width = simd::Vector<Target, Compute<T>>::width;
              if constexpr (width >= kLeastTile) recur_tiles<Target, T>(at, n);
            });
            j += tile;
            continue;
          }
          if (adjoin && m - j >= kAdjoiningLines) {
            const std::int64_t count =
                std::min(m - j, kMostAdjoiningLines) / kAdjoiningLines * kAdjoiningLines;
            recur_columns<T>(at, n, count);
            j += count;
            continue;
          }
          const int count = m - j >= 8 ? 8 : 1;
          count == 8 ? recur_all<T, 8>(at, n) : recur_all<T, 1>(at, n);
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
