// Attention of 16-bit floats on tensor cores, after Dao (2023). A block handles a tile of queries,
// or of keys, against all of the others; results stay in registers, which are the left operand of
// the next product as they are. Scores are computed again in the backward pass, once for the
// queries and once for the keys, so that each sum is that of one block, in one order.
#include "ops/attention/cuda/matrix_tiles.cu.h"
#include "ops/attention/cuda/tensor_core_attention.h"

namespace renga::attention {
namespace {

// Exponentials are powers of two: scores are multiplied by this.
constexpr float kLog2E = 1.44269504f, kLog2 = 0.693147181f;

// Rows of the tiles that a block passes over: as many as registers and the 99 KB of shared memory
// that each device has for a block allow.
constexpr int kKeys = 64;
constexpr int keys_of_gradients(int columns) { return columns <= 64 ? 64 : 32; }
constexpr int queries_of_gradients(int columns) { return columns <= 64 ? 32 : 16; }
static_assert(kPhiloxBlock == 64 && kBlockRows % kPhiloxBlock == 0);

// Divides the block's shared memory.
class Shared {
 public:
  __device__ Shared() : next_(cuda::shared_memory<std::byte>()) {}
  template <int columns>
  __device__ MatrixTile<columns> tile(int rows) {
    return MatrixTile<columns>(cuda::shared_address(take(rows * MatrixTile<columns>::kRowBytes)));
  }
  __device__ KeptKeys kept(int queries) {
    return {reinterpret_cast<std::uint64_t*>(take(KeptKeys::bytes(queries)))};
  }
  __device__ float* floats(int count) {
    return reinterpret_cast<float*>(take(sizeof(float) * count));
  }

 private:
  __device__ std::byte* take(std::size_t bytes) {
    std::byte* const taken = next_;
    next_ += bytes;
    return taken;
  }
  std::byte* next_;
};

// The head and the first row of a block. Causal queries with the most keys begin first.
struct Position {
  std::int64_t head, row;
};
__device__ inline Position position(std::int64_t rows, bool from_end) {
  const std::int64_t tiles = (rows + kBlockRows - 1) / kBlockRows, tile = blockIdx.x % tiles;
  return {blockIdx.x / tiles, (from_end ? tiles - 1 - tile : tile) * kBlockRows};
}

// Replaces products by scores times log2(e). row_of(row) tells of a row of the block what it reads,
// unless `are_products`: each row reads all columns then.
template <int n, class RowOf>
__device__ void score(const Scores& scores, bool are_products, const RowOf& row_of,
                      WarpSums<n>& products) {
  const float scale = scores.scale * kLog2E;
  unrolled<n>([&](int j) { unrolled<4>([&](int e) { products[j][e] *= scale; }); });
  if (are_products) return;
  const SumsLane lane;
  unrolled<2>([&](int half) {
    const Scores::Row row = row_of(lane.row(2 * half));
    unrolled<n>([&](int j) {
      unrolled<2>([&](int second) {
        const int column = lane.column(j, second);
        float& score = products[j][2 * half + second];
        if (column < row.first || column >= row.last) {
          score = -std::numeric_limits<float>::infinity();
        } else if (row.mask != nullptr) {
          score += scores.term(row.mask + column * row.mask_step) * kLog2E;
        }
      });
    });
  });
}

// The softmax of a thread's two rows over all tiles so far.
template <int columns>
struct Softmax {
  float top[2], total[2] = {};
  WarpSums<columns / 8> sums = {};

  __device__ Softmax() { top[0] = top[1] = -std::numeric_limits<float>::infinity(); }

  // Replaces scores by exponentials, and scales sums to the new maxima.
  template <int n>
  __device__ void add(WarpSums<n>& scores) {
    unrolled<2>([&](int half) {
      float highest = top[half];
      unrolled<n>([&](int j) {
        highest = std::max(highest, std::max(scores[j][2 * half], scores[j][2 * half + 1]));
      });
      highest = fold_columns(highest, [](float a, float b) { return std::max(a, b); });
      const float base = finite(highest), shrink = std::exp2(top[half] - base);
      float added = 0;
      unrolled<n>([&](int j) {
        unrolled<2>([&](int second) {
          float& score = scores[j][2 * half + second];
          score = std::exp2(score - base);
          added += score;
        });
      });
      top[half] = highest;
      total[half] = total[half] * shrink + added;  // of this thread's columns
      unrolled<columns / 8>([&](int c) {
        sums[c][2 * half] *= shrink;
        sums[c][2 * half + 1] *= shrink;
      });
    });
  }
};

template <class T, int columns>
__global__ void __launch_bounds__(kBlockThreads)
    attend(Operands<T> a, Heads<T> y, float* log_sums) {
  constexpr int n = kKeys / 8;
  const auto [head, query] = position(a.scores.queries, a.scores.is_causal);
  const auto k = a.k.head(head), v = a.v.head(head);
  Shared shared;
  const auto q_tile = shared.tile<columns>(kBlockRows);
  const auto k_tiles = shared.tile<columns>(2 * kKeys), v_tiles = shared.tile<columns>(2 * kKeys);
  const KeptKeys kept = shared.kept(2 * kBlockRows);
  const SumsLane lane;
  Softmax<columns> softmax;
  q_tile.load(a.q.head(head), query, kBlockRows);
  for_each_tile(
      0, a.scores.last_key(query + kBlockRows), kKeys,
      [&](std::int64_t key, int stage) {
        k_tiles.next(stage, kKeys).load(k, key, kKeys);
        v_tiles.next(stage, kKeys).load(v, key, kKeys);
        if (a.scores.threshold == 0) return;
        kept.next(stage, kBlockRows).draw(a.scores, head, query, kBlockRows, key);
      },
      [&](std::int64_t key, int stage) {
        WarpSums<n> weights;
        multiply_rows<T, n>(q_tile, k_tiles.next(stage, kKeys), weights);
        score<n>(
            a.scores, a.scores.are_products(query, kBlockRows, key, kKeys),
            [&](int row) { return a.scores.row_of_query(head, query + row, key); }, weights);
        softmax.template add<n>(weights);
        if (a.scores.threshold != 0) {
          const KeptKeys mine = kept.next(stage, kBlockRows);
          unrolled<n>([&](int j) {
            unrolled<4>([&](int e) {
              const bool is_kept = mine.keeps(lane.row(e), lane.column(j, e));
              weights[j][e] *= is_kept ? a.scores.kept_scale : 0.0f;
            });
          });
        }
        accumulate<T, n>(weights, v_tiles.next(stage, kKeys), softmax.sums);
      });
  unrolled<2>([&](int half) {
    const float total =
        fold_columns(softmax.total[half], [](float left, float right) { return left + right; });
    const float factor = total == 0 ? 0.0f : 1 / total;
    unrolled<columns / 8>([&](int c) {
      softmax.sums[c][2 * half] *= factor;
      softmax.sums[c][2 * half + 1] *= factor;
    });
    const std::int64_t at = query + lane.row(2 * half);
    if (lane.column(0, 0) == 0 && at < a.scores.queries) {
      log_sums[head * a.scores.queries + at] = total == 0
                                                   ? -std::numeric_limits<float>::infinity()
                                                   : (softmax.top[half] + std::log2(total)) * kLog2;
    }
  });
  store<T, columns / 8>(softmax.sums, y.head(head), query);
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

template <class T, int columns>
__global__ void __launch_bounds__(kBlockThreads)
    query_grads(Operands<T> a, Results<T> results, Heads<T> gq) {
  constexpr int keys = keys_of_gradients(columns), n = keys / 8;
  const auto [head, query] = position(a.scores.queries, a.scores.is_causal);
  const auto k = a.k.head(head), v = a.v.head(head);
  Shared shared;
  const auto q_tile = shared.tile<columns>(kBlockRows), gy_tile = shared.tile<columns>(kBlockRows);
  const auto k_tiles = shared.tile<columns>(2 * keys), v_tiles = shared.tile<columns>(2 * keys);
  const KeptKeys kept = shared.kept(2 * kBlockRows);
  const SumsLane lane;
  const QueryNumbers<T> of_rows[2]{{results, a.scores, head, query + lane.row(0)},
                                   {results, a.scores, head, query + lane.row(2)}};
  WarpSums<columns / 8> sums = {};
  q_tile.load(a.q.head(head), query, kBlockRows);
  gy_tile.load(results.gy.head(head), query, kBlockRows);
  for_each_tile(
      0, a.scores.last_key(query + kBlockRows), keys,
      [&](std::int64_t key, int stage) {
        k_tiles.next(stage, keys).load(k, key, keys);
        v_tiles.next(stage, keys).load(v, key, keys);
        if (a.scores.threshold == 0) return;
        kept.next(stage, kBlockRows)
            .draw(a.scores, head, query, kBlockRows, key / kPhiloxBlock * kPhiloxBlock);
      },
      [&](std::int64_t key, int stage) {
        WarpSums<n> weights, grads;
        multiply_rows<T, n>(q_tile, k_tiles.next(stage, keys), weights);
        multiply_rows<T, n>(gy_tile, v_tiles.next(stage, keys), grads);
        score<n>(
            a.scores, a.scores.are_products(query, kBlockRows, key, keys),
            [&](int row) { return a.scores.row_of_query(head, query + row, key); }, weights);
        const KeptKeys mine = kept.next(stage, kBlockRows);
        const int first = static_cast<int>(key % kPhiloxBlock);
        unrolled<n>([&](int j) {
          unrolled<4>([&](int e) {
            const bool is_kept =
                a.scores.threshold == 0 || mine.keeps(lane.row(e), first + lane.column(j, e));
            const QueryNumbers<T>& of_row = of_rows[e / 2];
            differentiate(a.scores, of_row.log_sum, of_row.mean, is_kept, weights[j][e],
                          grads[j][e]);
          });
        });
        accumulate<T, n>(grads, k_tiles.next(stage, keys), sums);
      });
  store<T, columns / 8>(sums, gq.head(head), query);
}

template <class T, int columns>
__global__ void __launch_bounds__(kBlockThreads)
    key_grads(Operands<T> a, Results<T> results, Heads<T> gk, Heads<T> gv) {
  constexpr int queries = queries_of_gradients(columns), n = queries / 8;
  constexpr int kBlocks = kBlockRows / static_cast<int>(kPhiloxBlock);  // of a query's keys
  const auto [head, key] = position(a.scores.keys, false);
  const auto q = a.q.head(head);
  const auto gy = results.gy.head(head);
  Shared shared;
  const auto k_tile = shared.tile<columns>(kBlockRows), v_tile = shared.tile<columns>(kBlockRows);
  const auto q_tiles = shared.tile<columns>(2 * queries);
  const auto gy_tiles = shared.tile<columns>(2 * queries);
  float* const log_sums = shared.floats(2 * queries);
  float* const means = shared.floats(2 * queries);
  const KeptKeys kept = shared.kept(2 * kBlocks * queries);
  const SumsLane lane;
  WarpSums<columns / 8> key_sums = {}, value_sums = {};
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
        for (int b = 0; b < kBlocks; ++b) {
          kept.next(kBlocks * stage + b, queries)
              .draw(a.scores, head, query, queries, key + kPhiloxBlock * b);
        }
      },
      [&](std::int64_t query, int stage) {
        WarpSums<n> weights, grads;
        multiply_rows<T, n>(k_tile, q_tiles.next(stage, queries), weights);
        multiply_rows<T, n>(v_tile, gy_tiles.next(stage, queries), grads);
        score<n>(
            a.scores, a.scores.are_products(query, queries, key, kBlockRows),
            [&](int row) { return a.scores.row_of_key(head, key + row, query); }, weights);
        constexpr int kBlock = static_cast<int>(kPhiloxBlock);
        const KeptKeys mine = kept.next(kBlocks * stage + lane.row(0) / kBlock, queries);
        unrolled<n>([&](int j) {
          unrolled<2>([&](int second) {
            const int column = lane.column(j, second);
            const float log_sum = log_sums[stage * queries + column];
            const float mean = means[stage * queries + column];
            unrolled<2>([&](int half) {
              const int e = 2 * half + second;
              const bool is_kept =
                  a.scores.threshold == 0 || mine.keeps(column, lane.row(e) % kBlock);
              differentiate(a.scores, log_sum, mean, is_kept, weights[j][e], grads[j][e]);
            });
          });
        });
        accumulate<T, n>(weights, gy_tiles.next(stage, queries), value_sums);
        accumulate<T, n>(grads, q_tiles.next(stage, queries), key_sums);
      });
  store<T, columns / 8>(key_sums, gk.head(head), key);
  store<T, columns / 8>(value_sums, gv.head(head), key);
}

// Calls visit(Type<T>{}, columns of the tiles in shared memory).
template <class Visit>
void visit_sizes(const Attention& a, const Visit& visit) {
  const std::int64_t longest = std::max(a.q.shape(3), a.v.shape(3));
  visit_dtype(a.q.dtype(), [&]<class T>(Type<T> type) {
    if constexpr (is_half<T>) {
      if (longest <= 32) return visit(type, std::integral_constant<int, 32>{});
      if (longest <= 64) return visit(type, std::integral_constant<int, 64>{});
      visit(type, std::integral_constant<int, 128>{});
    }
  });
}

// A block for each tile of rows of x. Its shared memory has `own` tiles of those rows, two stages
// of two tiles that they pass over, and `more_bytes`.
template <int columns>
cuda::Grid grid_for_rows(const Array& x, int own, int passed_rows, std::size_t more_bytes) {
  const std::int64_t tiles = (x.shape(2) + kBlockRows - 1) / kBlockRows;
  const std::size_t rows = own * kBlockRows + 4 * passed_rows;
  return {static_cast<unsigned>(x.shape(0) * x.shape(1) * tiles), kBlockThreads,
          rows * MatrixTile<columns>::kRowBytes + more_bytes};
}

}  // namespace

bool suit_tensor_cores(std::initializer_list<const Array*> arrays) {
  constexpr std::int64_t kBytes = 16, kMostColumns = 128;
  return std::ranges::all_of(arrays, [](const Array* x) {
    const auto address = reinterpret_cast<std::uintptr_t>(x->data());
    const bool are_vectors = std::ranges::all_of(
        std::span(x->strides()).first(3), [](std::int64_t step) { return step % kBytes == 0; });
    return size_of(x->dtype()) == 2 && x->shape(3) <= kMostColumns && x->shape(3) % kVector == 0 &&
           address % kBytes == 0 && are_vectors;
  });
}

void forward_on_tensor_cores(const Attention& a, const Array& y, const Array& log_sums) {
  visit_sizes(a, [&]<class T, int columns>(Type<T>, std::integral_constant<int, columns>) {
    const cuda::Grid grid = grid_for_rows<columns>(y, 1, kKeys, KeptKeys::bytes(2 * kBlockRows));
    if (grid.blocks == 0) return;
    cuda::launch(y.device(), grid, attend<T, columns>, Operands<T>(a), Heads<T>(y),
                 log_sums.as<float>());
  });
}

void backward_on_tensor_cores(const Attention& a, const Array& log_sums, const Array& means,
                              const Array& gy, const Array& gq, const Array& gk, const Array& gv) {
  visit_sizes(a, [&]<class T, int columns>(Type<T>, std::integral_constant<int, columns>) {
    const Operands<T> operands(a);
    const Results<T> results{Heads<const T>(gy), log_sums.as<const float>(),
                             means.as<const float>()};
    const cuda::Grid of_queries =
        grid_for_rows<columns>(gq, 2, keys_of_gradients(columns), KeptKeys::bytes(2 * kBlockRows));
    if (of_queries.blocks > 0) {
      cuda::launch(gq.device(), of_queries, query_grads<T, columns>, operands, results,
                   Heads<T>(gq));
    }
    constexpr int queries = queries_of_gradients(columns);
    constexpr int kept = 2 * queries * kBlockRows / static_cast<int>(kPhiloxBlock);
    const cuda::Grid of_keys =
        grid_for_rows<columns>(gk, 2, queries, 4 * sizeof(float) * queries + KeptKeys::bytes(kept));
    if (of_keys.blocks > 0) {
      cuda::launch(gk.device(), of_keys, key_grads<T, columns>, operands, results, Heads<T>(gk),
                   Heads<T>(gv));
    }
  });
}

}  // namespace renga::attention
