#include "collectives/reduce.h"

#include <algorithm>

#include "tensor/error.h"

namespace renga {

namespace {

constexpr const char* kNames[] = {"sum", "mean", "max", "min", "prod"};

// The accumulators of one block stay in the first-level cache.
constexpr std::int64_t kBlock = 2048;

// As NumPy's, these let a NaN on either side through.
template <class T>
T larger(T a, T b) {
  return a > b || a != a ? a : b;
}
template <class T>
T smaller(T a, T b) {
  return a < b || a != a ? a : b;
}

template <class A, class T, class Combine>
void combine_block(A* acc, const T* x, std::int64_t n, Combine combine) {
  for (std::int64_t i = 0; i < n; ++i)
    acc[i] = static_cast<A>(combine(acc[i], static_cast<A>(x[i])));
}

template <class A, class T>
void accumulate(Reduction reduction, A* acc, const T* x, std::int64_t n) {
  switch (reduction) {
    case Reduction::sum:
    case Reduction::mean:
      return combine_block(acc, x, n, [](A a, A b) { return a + b; });
    case Reduction::max:
      return combine_block(acc, x, n, larger<A>);
    case Reduction::min:
      return combine_block(acc, x, n, smaller<A>);
    case Reduction::prod:
      return combine_block(acc, x, n, [](A a, A b) { return a * b; });
  }
}

template <class T>
void reduce_as(Reduction reduction, std::span<const std::byte* const> xs, T* y, std::int64_t n) {
  using A = Compute<T>;
  A acc[kBlock];
  for (std::int64_t begin = 0; begin < n; begin += kBlock) {
    const std::int64_t length = std::min(kBlock, n - begin);
    const T* first = reinterpret_cast<const T*>(xs[0]) + begin;
    for (std::int64_t i = 0; i < length; ++i) acc[i] = static_cast<A>(first[i]);
    for (const std::byte* x : xs.subspan(1)) {
      accumulate(reduction, acc, reinterpret_cast<const T*>(x) + begin, length);
    }
    if constexpr (is_floating<T>) {
      if (reduction == Reduction::mean) {
        for (std::int64_t i = 0; i < length; ++i) acc[i] /= static_cast<A>(xs.size());
      }
    }
    for (std::int64_t i = 0; i < length; ++i) y[begin + i] = static_cast<T>(acc[i]);
  }
}

}  // namespace

Reduction reduction_from_string(const std::string& name) {
  const auto* found = std::ranges::find(kNames, name);
  require<std::invalid_argument>(found != std::end(kNames),
                                 "all_reduce: expected op sum, mean, max, min or prod, got ", name);
  return static_cast<Reduction>(found - std::begin(kNames));
}

const char* name_of(Reduction reduction) { return kNames[static_cast<int>(reduction)]; }

void reduce(Reduction reduction, Dtype dtype, std::span<const std::byte* const> xs, std::byte* y,
            std::int64_t n) {
  require(reduction != Reduction::mean || is_float(dtype),
          "all_reduce: expected a floating dtype for mean, got ", dtype);
  visit_dtype(dtype,
              [&]<class T>(Type<T>) { reduce_as(reduction, xs, reinterpret_cast<T*>(y), n); });
}

}  // namespace renga
