#include "ops/reduction/cuda/fold.cu.h"
#include "ops/reduction/reducers.h"
#include "ops/reduction/reduction.h"

namespace renga {
namespace {

template <class T, class R>
struct Fold {
  using Value = typename R::Value;
  using Result = typename R::Result;
  __device__ Value start() const { return R::start; }
  __device__ Value element(const std::byte* p, std::int64_t) const {
    return reducers::element<R>(static_cast<Value>(cuda::load<T>(p)));
  }
  __device__ Value fold(Value a, Value b) const { return R::fold(a, b); }
  __device__ void store(std::byte* p, Value v) const {
    cuda::store<Result>(p, static_cast<Compute<Result>>(v));
  }
};

// The first of the largest or smallest elements; NaN counts as more than both.
template <class T, bool largest>
struct ArgFold {
  struct Value {
    Compute<T> v;
    std::int32_t index;  // -1 for none
  };
  __device__ Value start() const { return {Compute<T>(0), -1}; }
  __device__ Value element(const std::byte* p, std::int64_t i) const {
    return {cuda::load<T>(p), static_cast<std::int32_t>(i)};
  }
  __device__ Value fold(const Value& a, const Value& b) const {
    const bool in_order = a.index < b.index;
    const Compute<T> first = in_order ? a.v : b.v, second = in_order ? b.v : a.v;
    const bool is_better = largest ? second > first : second < first;
    const bool is_second = !reducers::is_nan(first) && (is_better || reducers::is_nan(second));
    const bool is_b = a.index < 0 || (b.index >= 0 && is_second == in_order);
    return {is_b ? b.v : a.v, is_b ? b.index : a.index};  // a reference would be to local memory
  }
  __device__ void store(std::byte* p, const Value& best) const {
    *reinterpret_cast<std::int32_t*>(p) = best.index;
  }
};

template <class T, class R>
void reduce(const Array& x, const Axes& axes, const Array& y) {
  // An axis without elements has no first one to select.
  if (x.size() == 0) return fill(y, static_cast<double>(R::start));
  Array others = x, first = x, results = y;
  for (int i = x.ndim() - 1; i >= 0; --i) {
    if (axes.contains(i)) {
      first = select_view(first, i, 0);
      results = select_view(results, i, 0);
    } else {
      others = select_view(others, i, 0);
    }
  }
  cuda::fold(Fold<T, R>{}, results, first, others);
}

void reduce_cuda(Reduction map, const Array& x, const Axes& axes, const Array& y) {
  if (y.size() == 0) return;
  visit_dtype(reducers::comparable(x.dtype()), [&]<class T>(Type<T>) {
    if constexpr (!std::is_same_v<T, bool>) {
      reducers::visit_reducer<T>(map, [&]<class R>(Type<R>) { reduce<T, R>(x, axes, y); });
    }
  });
}

void arg_cuda(Reduction map, const Array& x, int axis, const Array& y) {
  if (y.size() == 0) return;
  Array others = x;
  for (int i = x.ndim() - 1; i >= 0; --i) {
    if (i != axis) others = select_view(others, i, 0);
  }
  const Array first = select_view(x, axis, 0);
  visit_dtype(reducers::comparable(x.dtype()), [&]<class T>(Type<T>) {
    if constexpr (!std::is_same_v<T, bool>) {
      if (map == Reduction::max) return cuda::fold(ArgFold<T, true>{}, y, first, others);
      cuda::fold(ArgFold<T, false>{}, y, first, others);
    }
  });
}

[[maybe_unused]] const bool registered =
    reduction_kernels.add(cuda::number(), {reduce_cuda, arg_cuda});

}  // namespace
}  // namespace renga
