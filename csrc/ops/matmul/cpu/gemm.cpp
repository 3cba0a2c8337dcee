// Blocks of both operands are packed into panels that stay in the caches; a tile of c is summed in
// registers (Goto and van de Geijn, "Anatomy of high-performance matrix multiplication", 2008).
#include "ops/matmul/cpu/gemm.h"

#include <algorithm>

#include "devices/rounding.h"
#include "simd/transpose.h"
#include "simd/vector.h"
#include "tensor/array.h"

namespace renga {
namespace {

constexpr std::int64_t kDepth = 256, kRows = 96, kColumnBytes = 4096;  // of blocks

template <class Target, class T>
struct Tile {
  using L = simd::Vector<Target, T>;
  static constexpr int rows = Target::has_mask_registers ? 12 : 6, columns = 2 * L::width;
};

// Lines of `width` elements of x, depth by depth; zeros where there are fewer. `x` has its width
// along rows. Up to a vector of numbers behind the lines may be overwritten.
template <class L, int width, class T>
[[gnu::always_inline]] inline void pack(const Strided<T>& x, std::int64_t extent,
                                        std::int64_t depth, T* to) {
  constexpr int squares = (width + L::width - 1) / L::width;
  for (std::int64_t begin = 0; begin < extent; begin += width) {
    const std::int64_t n = std::min<std::int64_t>(width, extent - begin);
    const T* from = x.data + begin * x.row_step;
    std::int64_t k = 0;
    // What adjoins along the depth is transposed in squares. The last one of a line may reach into
    // the next line, which is written later.
    const bool has_squares = L::width >= 4 && n == width && x.column_step == 1;
    for (; has_squares && k + L::width <= depth; k += L::width) {
      typename L::V lines[squares][L::width] = {};
#pragma GCC unroll 2
      for (int s = 0; s < squares; ++s) {
#pragma GCC unroll 16
        for (int i = 0; i < L::width; ++i) {
          const int row = s * L::width + i;
          if (row < width) lines[s][i] = L::load(from + row * x.row_step);
        }
        if constexpr (L::width >= 4) simd::shuffles::transpose(lines[s]);
      }
#pragma GCC unroll 16
      for (int i = 0; i < L::width; ++i, to += width) {
#pragma GCC unroll 2
        for (int s = 0; s < squares; ++s) L::store(lines[s][i], to + s * L::width);
      }
      from += L::width;
    }
    for (; k < depth; ++k, from += x.column_step, to += width) {
      if (width >= L::width && x.row_step == 1 && n == width) {
        for (int i = 0; i < width; i += L::width) {
          const int at = std::min(i, width - L::width);
          L::store(L::load(from + at), to + at);
        }
        continue;
      }
      for (std::int64_t i = 0; i < n; ++i) to[i] = from[i * x.row_step];
      std::fill(to + n, to + width, T(0));
    }
  }
}

// The tile of c at `c`, of which m rows and n columns exist, from packed lines.
template <class Target, class T>
[[gnu::always_inline]] inline void multiply_tile(const T* a, const T* b, std::int64_t depth, T* c,
                                                 std::int64_t ldc, std::int64_t m, std::int64_t n,
                                                 T factor, bool accumulate) {
  using Size = Tile<Target, T>;
  using L = typename Size::L;
  constexpr int rows = Size::rows, width = L::width;
  typename L::V sums[rows][2] = {};
#pragma GCC unroll 12
  for (int r = 0; r < rows; ++r) {
    if (r < m) __builtin_prefetch(c + r * ldc, 1);
  }
  for (std::int64_t k = 0; k < depth; ++k, a += rows, b += Size::columns) {
    const typename L::V first = L::load(b), second = L::load(b + width);
#pragma GCC unroll 12
    for (int r = 0; r < rows; ++r) {
      const typename L::V number = L::broadcast(a + r);
      sums[r][0] += number * first;
      sums[r][1] += number * second;
    }
  }
  T edge[rows * Size::columns];
  const bool is_whole = m >= rows && n >= Size::columns;
  T* const to = is_whole ? c : edge;
  const std::int64_t step = is_whole ? ldc : Size::columns;
  const bool adds = is_whole && accumulate;
#pragma GCC unroll 12
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < 2; ++v) {
      T* const at = to + r * step + v * width;
      const typename L::V product = sums[r][v] * factor;
      L::store(adds ? L::load(at) + product : product, at);
    }
  }
  if (is_whole) return;
  for (std::int64_t r = 0; r < std::min<std::int64_t>(rows, m); ++r) {
    for (std::int64_t j = 0; j < std::min<std::int64_t>(Size::columns, n); ++j) {
      T& element = c[r * ldc + j];
      element = (accumulate ? element : T(0)) + edge[r * Size::columns + j];
    }
  }
}

template <class Target, class T>
[[gnu::always_inline]] inline void multiply(const Strided<T>& a, const Strided<T>& b, T* c,
                                            std::int64_t ldc, std::int64_t m, std::int64_t n,
                                            std::int64_t k, T factor, bool accumulate) {
  using Size = Tile<Target, T>;
  constexpr std::int64_t rows = Size::rows, columns = Size::columns;
  constexpr auto most_columns = static_cast<std::int64_t>(kColumnBytes / sizeof(T));
  const std::int64_t depth = std::min(k, kDepth);
  const std::int64_t height = round_up(std::min(m, kRows), rows);
  const std::int64_t width = round_up(std::min(n, most_columns), columns);
  const Array memory = empty({depth * (height + width) + Size::L::width}, dtype_of<T>);
  // The left lines are packed again and again, so that they may not reach into the right ones.
  T* const right = memory.as<T>();
  T* const left = right + depth * width;
  for (std::int64_t j = 0; j < n; j += most_columns) {
    const std::int64_t width = std::min(most_columns, n - j);
    for (std::int64_t p = 0; p < k; p += kDepth) {
      const std::int64_t deep = std::min(kDepth, k - p);
      const bool adds = accumulate || p > 0;
      pack<typename Size::L, columns>(b.from(p, j).transposed(), width, deep, right);
      for (std::int64_t i = 0; i < m; i += kRows) {
        const std::int64_t height = std::min(kRows, m - i);
        pack<typename Size::L, rows>(a.from(i, p), height, deep, left);
        for (std::int64_t jj = 0; jj < width; jj += columns) {
          for (std::int64_t ii = 0; ii < height; ii += rows) {
            multiply_tile<Target, T>(left + ii * deep, right + jj * deep, deep,
                                     c + (i + ii) * ldc + j + jj, ldc, height - ii, width - jj,
                                     factor, adds);
          }
        }
      }
    }
  }
}

}  // namespace

template <class T>
void gemm(const Strided<T>& a, const Strided<T>& b, T* c, std::int64_t ldc, std::int64_t m,
          std::int64_t n, std::int64_t k, T factor, bool accumulate) {
  if (m == 0 || n == 0) return;
  if (k == 0) {
    for (std::int64_t i = 0; i < m && !accumulate; ++i) std::fill_n(c + i * ldc, n, T(0));
    return;
  }
  simd::dispatch_for<T>([&](auto target) __attribute__((always_inline)) {
    multiply<decltype(target)>(a, b, c, ldc, m, n, k, factor, accumulate);
  });
}

template void gemm(const Strided<float>&, const Strided<float>&, float*, std::int64_t, std::int64_t,
                   std::int64_t, std::int64_t, float, bool);
template void gemm(const Strided<double>&, const Strided<double>&, double*, std::int64_t,
                   std::int64_t, std::int64_t, std::int64_t, double, bool);

}  // namespace renga
