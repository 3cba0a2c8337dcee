// Attention, after Dao (2023). A block handles a tile of queries, or of keys, against all of the
// others. Results stay in registers. Scores are computed again in the backward pass, once for the
// queries and once for the keys, so that each sum is that of one block, in one order.
#include "ops/attention/cuda/float_unit.cu.h"
#include "ops/attention/cuda/row_attention.h"
#include "ops/attention/cuda/tensor_core_unit.cu.h"

namespace renga::attention {
namespace {

// Exponentials are powers of two: scores are multiplied by this.
constexpr float kLog2E = 1.44269504f, kLog2 = 0.693147181f;

constexpr int kDrawnKeys = static_cast<int>(kPhiloxBlock);
static_assert(kBlockRows % kDrawnKeys == 0);

// The head and the first row of a block. Causal queries with the most keys begin first.
struct Position {
  std::int64_t head, row;
};
__device__ inline Position position(std::int64_t rows, bool from_end) {
  const std::int64_t tiles = (rows + kBlockRows - 1) / kBlockRows, tile = blockIdx.x % tiles;
  return {blockIdx.x / tiles, (from_end ? tiles - 1 - tile : tile) * kBlockRows};
}

// Calls body(row, column) for each number of a thread.
template <int rows, int columns, class Body>
__device__ void for_each_number(const Body& body) {
  unrolled<rows>([&](int r) { unrolled<columns>([&](int c) { body(r, c); }); });
}

// Replaces products by scores times log2(e). row_of(row) tells of a row of the block what it reads,
// unless `are_products`: each row reads all columns then.
template <class Unit, int n, class RowOf>
__device__ void score(const Scores& scores, bool are_products, const RowOf& row_of,
                      typename Unit::template Sums<n>& products) {
  constexpr int rows = Unit::kThreadRows, columns = Unit::template Sums<n>::kColumns;
  const float scale = scores.scale * kLog2E;
  for_each_number<rows, columns>([&](int r, int c) { products.at(r, c) *= scale; });
  if (are_products) return;
  unrolled<rows>([&](int r) {
    const Scores::Row row = row_of(Unit::row(r));
    unrolled<columns>([&](int c) {
      const int column = Unit::column(c);
      if (column < row.first || column >= row.last) {
        products.at(r, c) = -std::numeric_limits<float>::infinity();
      } else if (row.mask != nullptr) {
        products.at(r, c) += scores.term(row.mask + column * row.mask_step) * kLog2E;
      }
    });
  });
}

// The softmax of a thread's rows over all tiles so far.
template <class Unit, int columns>
struct Softmax {
  static constexpr int kRows = Unit::kThreadRows;
  using Sums = typename Unit::template Sums<columns>;
  float top[kRows], total[kRows] = {};
  Sums sums;

  __device__ Softmax() {
    unrolled<kRows>([&](int r) { top[r] = -std::numeric_limits<float>::infinity(); });
  }

  // Replaces scores by exponentials, and scales sums to the new maxima.
  template <class Weights>
  __device__ void add(Weights& scores) {
    unrolled<kRows>([&](int r) {
      float highest = top[r];
      unrolled<Weights::kColumns>([&](int c) { highest = std::max(highest, scores.at(r, c)); });
      highest =
          fold_lanes<Unit::kRowLanes>(highest, [](float a, float b) { return std::max(a, b); });
      const float base = finite(highest), shrink = std::exp2(top[r] - base);
      float added = 0;
      unrolled<Weights::kColumns>([&](int c) {
        scores.at(r, c) = std::exp2(scores.at(r, c) - base);
        added += scores.at(r, c);
      });
      top[r] = highest;
      total[r] = total[r] * shrink + added;  // of this thread's columns
      unrolled<Sums::kColumns>([&](int c) { sums.at(r, c) *= shrink; });
    });
  }
};

// Tiles of `keys` keys and values that pass a block's queries, in two stages, with their dropout.
template <class Unit, int columns, int keys>
struct PassingKeys {
  using T = typename Unit::T;
  using Tile = typename Unit::template Tile<columns>;
  const Scores& scores;
  std::int64_t head, query;
  HeadRows<const T> k, v;
  Tile k_tiles, v_tiles;
  Unit unit;
  KeptKeys kept;

  __device__ PassingKeys(const Operands<T>& a, const Position& at, Shared& shared)
      : scores(a.scores),
        head(at.head),
        query(at.row),
        k(a.k.head(at.head)),
        v(a.v.head(at.head)),
        k_tiles(shared, 2 * keys),
        v_tiles(shared, 2 * keys),
        unit(shared, keys),
        kept{shared.take<std::uint64_t>(2 * kBlockRows)} {}

  // Calls compute(key, keys of the tile, values of the tile, stage) for each tile that is read.
  template <class Compute>
  __device__ void for_each(const Compute& compute) const {
    for_each_tile(
        0, scores.last_key(query + kBlockRows), keys,
        [&](std::int64_t key, int stage) {
          k_tiles.next(stage, keys).load(k, key, keys);
          v_tiles.next(stage, keys).load(v, key, keys);
          if (scores.threshold == 0) return;
          kept.next(stage, kBlockRows).draw(scores, head, query, kBlockRows, key);
        },
        [&](std::int64_t key, int stage) {
          compute(key, k_tiles.next(stage, keys), v_tiles.next(stage, keys), stage);
        });
  }
  __device__ void score_products(std::int64_t key,
                                 typename Unit::template Sums<keys>& products) const {
    score<Unit, keys>(
        scores, scores.are_products(query, kBlockRows, key, keys),
        [&](int row) { return scores.row_of_query(head, query + row, key); }, products);
  }
  // Whether the dropout keeps a number of this thread.
  __device__ bool keeps(std::int64_t key, int stage, int r, int c) const {
    const int first = static_cast<int>(key % kDrawnKeys);
    return scores.threshold == 0 ||
           kept.next(stage, kBlockRows).keeps(Unit::row(r), first + Unit::column(c));
  }
};

template <class Unit, int columns>
__global__ void __launch_bounds__(kBlockThreads)
    attend(Operands<typename Unit::T> a, Heads<typename Unit::T> y, float* log_sums) {
  constexpr int keys = Unit::keys(columns), rows = Unit::kThreadRows;
  using Tile = typename Unit::template Tile<columns>;
  using Weights = typename Unit::template Sums<keys>;
  const Position at = position(a.scores.queries, a.scores.is_causal);
  Shared shared;
  const Tile q_tile(shared, kBlockRows);
  const PassingKeys<Unit, columns, keys> passing(a, at, shared);
  Softmax<Unit, columns> softmax;
  q_tile.load(a.q.head(at.head), at.row, kBlockRows);
  passing.for_each([&](std::int64_t key, const Tile& k, const Tile& v, int stage) {
    Weights weights;
    passing.unit.template multiply_rows<keys>(q_tile, k, weights);
    passing.score_products(key, weights);
    softmax.add(weights);
    if (a.scores.threshold != 0) {
      for_each_number<rows, Weights::kColumns>([&](int r, int c) {
        weights.at(r, c) *= passing.keeps(key, stage, r, c) ? a.scores.kept_scale : 0.0f;
      });
    }
    passing.unit.template accumulate<keys>(weights, v, softmax.sums);
  });
  unrolled<rows>([&](int r) {
    const float total = fold_lanes<Unit::kRowLanes>(
        softmax.total[r], [](float left, float right) { return left + right; });
    const float factor = total == 0 ? 0.0f : 1 / total;
    unrolled<Unit::template Sums<columns>::kColumns>(
        [&](int c) { softmax.sums.at(r, c) *= factor; });
    const std::int64_t query = at.row + Unit::row(r);
    if (Unit::column(0) == 0 && query < a.scores.queries) {
      log_sums[at.head * a.scores.queries + query] =
          total == 0 ? -std::numeric_limits<float>::infinity()
                     : (softmax.top[r] + std::log2(total)) * kLog2;
    }
  });
  Unit::store(softmax.sums, y.head(at.head), at.row);
}

// Of a query: the logarithm of its softmax's denominator, times log2(e), and its mean.
template <class T>
struct QueryNumbers {
  float log_sum = 0, mean = 0;
  __device__ QueryNumbers(const Results<T>& results, const Scores& scores, std::int64_t head,
                          std::int64_t query) {
    if (query >= scores.queries) return;
    log_sum = finite(results.log_sums[head * scores.queries + query] * kLog2E);
    mean = results.means[head * scores.queries + query];
  }
};

// Replaces scores by weights after dropout, and the gradients of weights by those of products.
__device__ inline void differentiate(const Scores& scores, float log_sum, float mean, bool is_kept,
                                     float& weight, float& grad) {
  const float p = std::exp2(weight - log_sum), factor = is_kept ? scores.kept_scale : 0.0f;
  weight = p * factor;
  grad = p * (grad * factor - mean) * scores.scale;
}

template <class Unit, int columns, class T = typename Unit::T>
__global__ void __launch_bounds__(kBlockThreads)
    query_grads(Operands<T> a, Results<T> results, Heads<T> gq) {
  constexpr int keys = Unit::keys_of_gradients(columns), rows = Unit::kThreadRows;
  using Tile = typename Unit::template Tile<columns>;
  using Weights = typename Unit::template Sums<keys>;
  const Position at = position(a.scores.queries, a.scores.is_causal);
  Shared shared;
  const Tile q_tile(shared, kBlockRows), gy_tile(shared, kBlockRows);
  const PassingKeys<Unit, columns, keys> passing(a, at, shared);
  float log_sums[rows], means[rows];
  unrolled<rows>([&](int r) {
    const QueryNumbers<T> numbers(results, a.scores, at.head, at.row + Unit::row(r));
    log_sums[r] = numbers.log_sum;
    means[r] = numbers.mean;
  });
  typename Unit::template Sums<columns> sums;
  q_tile.load(a.q.head(at.head), at.row, kBlockRows);
  gy_tile.load(results.gy.head(at.head), at.row, kBlockRows);
  passing.for_each([&](std::int64_t key, const Tile& k, const Tile& v, int stage) {
    Weights weights, grads;
    passing.unit.template multiply_rows<keys>(q_tile, k, weights);
    passing.unit.template multiply_rows<keys>(gy_tile, v, grads);
    passing.score_products(key, weights);
    for_each_number<rows, Weights::kColumns>([&](int r, int c) {
      differentiate(a.scores, log_sums[r], means[r], passing.keeps(key, stage, r, c),
                    weights.at(r, c), grads.at(r, c));
    });
    passing.unit.template accumulate<keys>(grads, k, sums);
  });
  Unit::store(sums, gq.head(at.head), at.row);
}

template <class Unit, int columns, class T = typename Unit::T>
__global__ void __launch_bounds__(kBlockThreads)
    key_grads(Operands<T> a, Results<T> results, Heads<T> gk, Heads<T> gv) {
  constexpr int queries = Unit::queries_of_gradients(columns), rows = Unit::kThreadRows;
  constexpr int draws = kBlockRows / kDrawnKeys;  // of a query's keys
  using Tile = typename Unit::template Tile<columns>;
  using Weights = typename Unit::template Sums<queries>;
  const auto [head, key] = position(a.scores.keys, false);
  const auto q = a.q.head(head);
  const auto gy = results.gy.head(head);
  Shared shared;
  const Tile k_tile(shared, kBlockRows), v_tile(shared, kBlockRows);
  const Tile q_tiles(shared, 2 * queries), gy_tiles(shared, 2 * queries);
  const Unit unit(shared, queries);
  const KeptKeys kept{shared.take<std::uint64_t>(2 * draws * queries)};
  float* const log_sums = shared.take<float>(2 * queries);
  float* const means = shared.take<float>(2 * queries);
  typename Unit::template Sums<columns> key_sums, value_sums;
  k_tile.load(a.k.head(head), key, kBlockRows);
  v_tile.load(a.v.head(head), key, kBlockRows);
  for_each_tile(
      a.scores.is_causal ? key : 0, a.scores.queries, queries,
      [&](std::int64_t query, int stage) {
        q_tiles.next(stage, queries).load(q, query, queries);
        gy_tiles.next(stage, queries).load(gy, query, queries);
        const int i = static_cast<int>(threadIdx.x);
        if (i < queries) {
          const QueryNumbers<T> numbers(results, a.scores, head, query + i);
          log_sums[stage * queries + i] = numbers.log_sum;
          means[stage * queries + i] = numbers.mean;
        }
        if (a.scores.threshold == 0) return;
        for (int b = 0; b < draws; ++b) {
          kept.next(draws * stage + b, queries)
              .draw(a.scores, head, query, queries, key + kDrawnKeys * b);
        }
      },
      [&](std::int64_t query, int stage) {
        Weights weights, grads;
        unit.template multiply_rows<queries>(k_tile, q_tiles.next(stage, queries), weights);
        unit.template multiply_rows<queries>(v_tile, gy_tiles.next(stage, queries), grads);
        score<Unit, queries>(
            a.scores, a.scores.are_products(query, queries, key, kBlockRows),
            [&](int row) { return a.scores.row_of_key(head, key + row, query); }, weights);
        const KeptKeys mine = kept.next(draws * stage + row_of_warp() / kDrawnKeys, queries);
        unrolled<Weights::kColumns>([&](int c) {
          const int column = Unit::column(c);
          const float log_sum = log_sums[stage * queries + column];
          const float mean = means[stage * queries + column];
          unrolled<rows>([&](int r) {
            const bool is_kept =
                a.scores.threshold == 0 || mine.keeps(column, Unit::row(r) % kDrawnKeys);
            differentiate(a.scores, log_sum, mean, is_kept, weights.at(r, c), grads.at(r, c));
          });
        });
        unit.template accumulate<queries>(weights, gy_tiles.next(stage, queries), value_sums);
        unit.template accumulate<queries>(grads, q_tiles.next(stage, queries), key_sums);
      });
  Unit::store(key_sums, gk.head(head), key);
  Unit::store(value_sums, gv.head(head), key);
}

template <class T>
using UnitOf = std::conditional_t<is_half<T>, TensorCoreUnit<T>, FloatUnit>;

std::int64_t most_columns(Dtype dtype) { return dtype == Dtype::float32 ? 64 : 128; }

// Calls visit(Type<T>{}, columns of the tiles in shared memory).
template <class Visit>
void visit_sizes(const Attention& a, const Visit& visit) {
  const std::int64_t longest = std::max(a.q.shape(3), a.v.shape(3));
  visit_dtype(a.q.dtype(), [&]<class T>(Type<T> type) {
    if constexpr (is_half<T> || std::is_same_v<T, float>) {
      if (longest <= 32) return visit(type, std::integral_constant<int, 32>{});
      if (longest <= 64) return visit(type, std::integral_constant<int, 64>{});
    }
    if constexpr (is_half<T>) visit(type, std::integral_constant<int, 128>{});
  });
}

// A block for each tile of rows of x. Its shared memory has `own` tiles of those rows, two stages
// of two tiles that they pass over, the dropout of two stages, and `more_bytes`.
template <class Unit, int columns>
cuda::Grid grid_for_rows(const Array& x, int own, int passed_rows, int drawn_rows,
                         std::size_t more_bytes) {
  const std::int64_t tiles = (x.shape(2) + kBlockRows - 1) / kBlockRows;
  const std::size_t rows = own * kBlockRows + 4 * passed_rows;
  return {static_cast<unsigned>(x.shape(0) * x.shape(1) * tiles), kBlockThreads,
          rows * Unit::template Tile<columns>::kRowBytes + Unit::scratch_bytes(passed_rows) +
              2 * sizeof(std::uint64_t) * drawn_rows + more_bytes};
}

}  // namespace

bool suit_row_blocks(std::initializer_list<const Array*> arrays) {
  return std::ranges::all_of(arrays, [](const Array* x) {
    if (x->shape(3) > most_columns(x->dtype())) return false;
    if (size_of(x->dtype()) != 2) return true;
    constexpr std::int64_t kBytes = 16;  // of numbers that one instruction copies
    const auto is_multiple = [](std::int64_t bytes) { return bytes % kBytes == 0; };
    return is_multiple(x->shape(3) * x->itemsize()) &&
           is_multiple(static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(x->data()))) &&
           std::ranges::all_of(std::span(x->strides()).first(3), is_multiple);
  });
}

void forward_by_row_blocks(const Attention& a, const Array& y, const Array& log_sums) {
  visit_sizes(a, [&]<class T, int columns>(Type<T>, std::integral_constant<int, columns>) {
    using Unit = UnitOf<T>;
    const cuda::Grid grid = grid_for_rows<Unit, columns>(y, 1, Unit::keys(columns), kBlockRows, 0);
    if (grid.blocks == 0) return;
    cuda::launch(y.device(), grid, attend<Unit, columns>, Operands<T>(a), Heads<T>(y),
                 log_sums.as<float>());
  });
}

void backward_by_row_blocks(const Attention& a, const Array& log_sums, const Array& means,
                            const Array& gy, const Array& gq, const Array& gk, const Array& gv) {
  visit_sizes(a, [&]<class T, int columns>(Type<T>, std::integral_constant<int, columns>) {
    using Unit = UnitOf<T>;
    const Operands<T> operands(a);
    const Results<T> results{Heads<const T>(gy), log_sums.as<const float>(),
                             means.as<const float>()};
    const cuda::Grid of_queries =
        grid_for_rows<Unit, columns>(gq, 2, Unit::keys_of_gradients(columns), kBlockRows, 0);
    if (of_queries.blocks > 0) {
      cuda::launch(gq.device(), of_queries, query_grads<Unit, columns>, operands, results,
                   Heads<T>(gq));
    }
    constexpr int queries = Unit::queries_of_gradients(columns);
    const cuda::Grid of_keys = grid_for_rows<Unit, columns>(
        gk, 2, queries, queries * kBlockRows / kDrawnKeys, 4 * sizeof(float) * queries);
    if (of_keys.blocks > 0) {
      cuda::launch(gk.device(), of_keys, key_grads<Unit, columns>, operands, results, Heads<T>(gk),
                   Heads<T>(gv));
    }
  });
}

}  // namespace renga::attention
