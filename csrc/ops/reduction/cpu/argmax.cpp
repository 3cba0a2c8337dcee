#include "ops/reduction/cpu/argmax.h"

#include <algorithm>

#include "devices/gil_release.h"
#include "ops/reduction/cpu/extremes.h"
#include "tensor/strided_loop.h"

namespace renga::reduction {
namespace {

using reducers::comparable, reducers::is_nan;

constexpr std::int64_t kArgColumns = 512;  // whose best numbers stay in the nearest cache
constexpr std::int64_t kShortest = 32;     // run of floats that is worth the call for vectors

// The first index of the largest or smallest number of a run.
template <class T, bool largest>
std::int32_t arg_of_run(const std::byte* x, std::int64_t step, std::int64_t n) {
  auto best = load<T>(x);
  std::int32_t at = 0;
  for (std::int64_t i = 1; i < n; ++i) {
    const auto v = load<T>(x + i * step);
    const bool beaten = largest ? v <= best : v >= best;
    if (!beaten && !is_nan(best)) {
      best = v;
      at = static_cast<std::int32_t>(i);
    }
  }
  return at;
}

// The same for adjoining floats, a block at a time, whose best number is found in vectors: only the
// block that has the best one of all is searched for its place.
template <class T, bool largest>
std::int32_t arg_of_floats(const T* x, std::int64_t n) {
  using R = std::conditional_t<largest, reducers::Max<T>, reducers::Min<T>>;
  constexpr std::int64_t kBlock = 1024;
  T best = R::start;
  const T* from = x;
  for (std::int64_t i = 0; i < n && !is_nan(best); i += kBlock) {
    T top = R::start;
    const auto* const block = reinterpret_cast<const std::byte*>(x + i);
    compare_vectors<R>(block, 0, 1, std::min(kBlock, n - i), &top);
    if (largest ? !(top <= best) : !(top >= best)) best = top, from = x + i;
  }
  constexpr std::int64_t kGroup = 64;
  for (const T* const end = x + n;; from += kGroup) {
    const std::int64_t m = std::min(kGroup, end - from);
    std::int64_t places = 0;
    for (std::int64_t i = 0; i < m; ++i) places += is_nan(best) ? is_nan(from[i]) : from[i] == best;
    if (places == 0) continue;
    while (is_nan(best) ? !is_nan(*from) : *from != best) ++from;
    return static_cast<std::int32_t>(from - x);
  }
}

// Finds the first index of the largest or smallest number of each column of adjoining numbers, row
// by row, without branches. The compiler makes vectors of this loop, but not of one over float16,
// whose rows are converted first.
template <class T, bool largest>
void arg_of_rows(const std::byte* x, std::int64_t row_step, std::int64_t rows, std::int64_t n,
                 std::int32_t* __restrict at) {
  using Element = std::conditional_t<std::is_same_v<T, float16>, float, T>;
  constexpr auto item = static_cast<int>(sizeof(Element));
  [[maybe_unused]] float numbers[kArgColumns];
  const auto elements_of = [&](const std::byte* row) {
    if constexpr (std::is_same_v<T, Element>) return row;
    if constexpr (!std::is_same_v<T, Element>) return converted<T>(row, n, numbers);
  };
  Compute<T> best[kArgColumns];
  const std::byte* from = elements_of(x);
  for (std::int64_t k = 0; k < n; ++k) {
    best[k] = load<Element>(from + k * item);
    at[k] = 0;
  }
  for (std::int64_t i = 1; i < rows; ++i) {
    x += row_step;
    from = elements_of(x);
    for (std::int64_t k = 0; k < n; ++k) {
      const Compute<T> v = load<Element>(from + k * item);
      const bool is_better = !(largest ? v <= best[k] : v >= best[k]) & !is_nan(best[k]);
      best[k] = is_better ? v : best[k];
      at[k] = is_better ? static_cast<std::int32_t>(i) : at[k];
    }
  }
}

}  // namespace

void arg_cpu(Reduction map, const Array& x, int axis, const Array& y) {
  const GilRelease work(x.size());
  const std::int64_t n = x.shape(axis), step = x.strides()[axis];
  const Array rows = select_view(x, axis, 0);
  visit_dtype(comparable(x.dtype()), [&]<class T>(Type<T>) {
    const bool largest = map == Reduction::max;
    const auto of_run = largest ? arg_of_run<T, true> : arg_of_run<T, false>;
    const auto of_rows = largest ? arg_of_rows<T, true> : arg_of_rows<T, false>;
    parallel_walk(make_loop<2>({&y, &rows}), n, [&](std::int64_t m, const auto& p, const auto& s) {
      if (s[1] == sizeof(T) && s[0] == sizeof(std::int32_t)) {
        for (std::int64_t j = 0; j < m; j += kArgColumns) {
          of_rows(p[1] + j * s[1], step, n, std::min(kArgColumns, m - j),
                  reinterpret_cast<std::int32_t*>(p[0]) + j);
        }
        return;
      }
      for (std::int64_t j = 0; j < m; ++j) {
        auto& at = *reinterpret_cast<std::int32_t*>(p[0] + j * s[0]);
        const std::byte* const run = p[1] + j * s[1];
        if constexpr (std::is_floating_point_v<T>) {
          if (step == sizeof(T) && n >= kShortest) {
            const auto* const floats = reinterpret_cast<const T*>(run);
            at = largest ? arg_of_floats<T, true>(floats, n) : arg_of_floats<T, false>(floats, n);
            continue;
          }
        }
        at = of_run(run, step, n);
      }
    });
  });
}

}  // namespace renga::reduction
