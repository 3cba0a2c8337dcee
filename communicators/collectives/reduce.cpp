#include "collectives/reduce.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "tensor/error.h"

namespace renga {

namespace {

constexpr const char* kNames[] = {"sum", "mean", "max", "min", "prod"};

// The accumulators of one block fit into the first-level cache.
constexpr std::int64_t kBlock = 1024;
// The depth of the tree: enough for 2^16 ranks.
constexpr int kLevels = 17;

// Integers wrap around as in NumPy; in C++ only unsigned arithmetic may.
template <class T>
auto wrapping(T v) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<std::make_unsigned_t<decltype(v + v)>>(v);
  } else {
    return v;
  }
}

// Calls visit(op) with the function of two numbers. Like NumPy's, max and min propagate NaN.
template <class Visit>
void visit_operation(ReduceOp reduction, const Visit& visit) {
  switch (reduction) {
    case ReduceOp::sum:
    case ReduceOp::mean:
      return visit([](auto a, auto b) { return wrapping(a) + wrapping(b); });
    case ReduceOp::max:
      return visit([](auto a, auto b) { return a > b || a != a ? a : b; });
    case ReduceOp::min:
      return visit([](auto a, auto b) { return a < b || a != a ? a : b; });
    case ReduceOp::prod:
      return visit([](auto a, auto b) { return wrapping(a) * wrapping(b); });
  }
}

// y may be either operand, but must not overlap one otherwise.
template <class A, class X, class Y, class Op>
void combine(const X* left, const Y* right, A* y, std::int64_t n, const Op& op) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < n; ++i) {
    y[i] = static_cast<A>(op(static_cast<A>(left[i]), static_cast<A>(right[i])));
  }
}

// Reduces one block of every operand along the tree.
template <class T, class Op>
class Block {
 public:
  using A = Compute<T>;

  Block(Operands xs, const Op& op)
      : xs_(xs),
        op_(op),
        leaves_(static_cast<int>(std::bit_floor(xs.size()))),
        pairs_(static_cast<int>(xs.size()) - leaves_) {}

  // The result for elements [begin, begin + n), valid until the next call.
  const A* reduce(std::int64_t begin, std::int64_t n) {
    begin_ = begin;
    n_ = n;
    return subtree(0, leaves_, accumulators_);
  }

 private:
  const T* operand(int rank) const {
    return reinterpret_cast<const T*>(xs_[static_cast<std::size_t>(rank)]) + begin_;
  }

  // The leaves [first, first + count); `acc` has one accumulator per level.
  const A* subtree(int first, int count, A (*acc)[kBlock]) {
    if (count == 1) return leaf(first, *acc);
    if (count == 2 && first >= pairs_) {
      combine(operand(first + pairs_), operand(first + pairs_ + 1), *acc, n_, op_);
      return *acc;
    }
    subtree(first, count / 2, acc);
    combine(*acc, subtree(first + count / 2, count / 2, acc + 1), *acc, n_, op_);
    return *acc;
  }

  // The first leaves are pairs of operands, the others one operand each.
  const A* leaf(int index, A* acc) {
    if (index < pairs_) {
      combine(operand(2 * index), operand(2 * index + 1), acc, n_, op_);
    } else {
      const T* x = operand(index + pairs_);
      for (std::int64_t i = 0; i < n_; ++i) acc[i] = static_cast<A>(x[i]);
    }
    return acc;
  }

  Operands xs_;
  const Op& op_;
  int leaves_;
  int pairs_;
  std::int64_t begin_ = 0;
  std::int64_t n_ = 0;
  alignas(64) A accumulators_[kLevels][kBlock];
};

// Calls write(begin, length, result) for each block.
template <class T, class Write>
void reduce_blocks(ReduceOp reduction, Operands xs, std::int64_t n, const Write& write) {
  visit_operation(reduction, [&](const auto& op) {
    Block<T, std::remove_cvref_t<decltype(op)>> block(xs, op);
    for (std::int64_t begin = 0; begin < n; begin += kBlock) {
      const std::int64_t length = std::min(kBlock, n - begin);
      write(begin, length, block.reduce(begin, length));
    }
  });
}

template <class T>
void finish(ReduceOp reduction, int operands, const Compute<T>* partial, T* y, std::int64_t n) {
  if constexpr (is_floating<T>) {
    if (reduction == ReduceOp::mean) {
      const auto count = static_cast<Compute<T>>(operands);
#pragma GCC ivdep
      for (std::int64_t i = 0; i < n; ++i) y[i] = static_cast<T>(partial[i] / count);
      return;
    }
  }
  for (std::int64_t i = 0; i < n; ++i) y[i] = static_cast<T>(partial[i]);
}

template <class T>
void copy_to(Results ys, std::int64_t begin, std::int64_t length, const T* from) {
  for (std::byte* y : ys) {
    std::memcpy(reinterpret_cast<T*>(y) + begin, from,
                static_cast<std::size_t>(length) * sizeof(T));
  }
}

// Two operands need no accumulator besides the result.
template <class T>
void reduce_two(ReduceOp reduction, Operands xs, Results ys, std::int64_t n) {
  const T *left = reinterpret_cast<const T*>(xs[0]), *right = reinterpret_cast<const T*>(xs[1]);
  visit_operation(reduction, [&](const auto& op) {
    for (std::int64_t begin = 0; begin < n; begin += kBlock) {
      const std::int64_t length = std::min(kBlock, n - begin);
      T* y = reinterpret_cast<T*>(ys[0]) + begin;
      combine(left + begin, right + begin, y, length, op);
      if (reduction == ReduceOp::mean) finish(reduction, 2, y, y, length);
      copy_to(ys.subspan(1), begin, length, y);
    }
  });
}

template <class T>
void reduce_as(ReduceOp reduction, Operands xs, Results ys, std::int64_t n) {
  if constexpr (std::is_same_v<T, Compute<T>>) {
    if (xs.size() == 2) return reduce_two<T>(reduction, xs, ys, n);
  }
  const int operands = static_cast<int>(xs.size());
  reduce_blocks<T>(reduction, xs, n, [&](std::int64_t begin, std::int64_t length, const auto* acc) {
    T* y = reinterpret_cast<T*>(ys[0]) + begin;
    finish(reduction, operands, acc, y, length);
    copy_to(ys.subspan(1), begin, length, y);
  });
}

}  // namespace

ReduceOp reduction_from_string(std::string_view name) {
  const auto* found = std::ranges::find(kNames, name);
  require<std::invalid_argument>(found != std::end(kNames),
                                 "all_reduce: expected op sum, mean, max, min or prod, got ", name);
  return static_cast<ReduceOp>(found - std::begin(kNames));
}

const char* name_of(ReduceOp reduction) { return kNames[static_cast<int>(reduction)]; }

void reduce(ReduceOp reduction, Dtype dtype, Operands xs, Results ys, std::int64_t n) {
  visit_dtype(dtype, [&]<class T>(Type<T>) { reduce_as<T>(reduction, xs, ys, n); });
}

int left_operands(int operands) {
  const int leaves = static_cast<int>(std::bit_floor(static_cast<unsigned>(operands)));
  return leaves / 2 + std::min(operands - leaves, leaves / 2);
}

Dtype partial_dtype(Dtype dtype) {
  return visit_dtype(dtype, []<class T>(Type<T>) { return dtype_of<Compute<T>>; });
}

void reduce_to_partial(ReduceOp reduction, Dtype dtype, Operands xs, std::byte* partial,
                       std::int64_t n) {
  visit_dtype(dtype, [&]<class T>(Type<T>) {
    auto* y = reinterpret_cast<Compute<T>*>(partial);
    reduce_blocks<T>(reduction, xs, n,
                     [y](std::int64_t begin, std::int64_t length, const auto* acc) {
                       std::memcpy(y + begin, acc, static_cast<std::size_t>(length) * sizeof(*y));
                     });
  });
}

void combine_partial(ReduceOp reduction, Dtype dtype, const std::byte* left, const std::byte* right,
                     std::byte* y, std::int64_t n) {
  visit_dtype(partial_dtype(dtype), [&]<class T>(Type<T>) {
    visit_operation(reduction, [&](const auto& op) {
      if constexpr (!is_half<T>) {
        combine(reinterpret_cast<const T*>(left), reinterpret_cast<const T*>(right),
                reinterpret_cast<T*>(y), n, op);
      }
    });
  });
}

void finish_partial(ReduceOp reduction, Dtype dtype, int operands, const std::byte* partial,
                    std::byte* y, std::int64_t n) {
  visit_dtype(dtype, [&]<class T>(Type<T>) {
    finish(reduction, operands, reinterpret_cast<const Compute<T>*>(partial),
           reinterpret_cast<T*>(y), n);
  });
}

}  // namespace renga
