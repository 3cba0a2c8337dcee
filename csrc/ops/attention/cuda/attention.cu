// Attention with rows of any length, where row_attention.h has no kernels. Each block handles the
// queries, or the keys, of one tile against all of the others, as far as some of the results'
// columns need them. Scores are computed again in the backward pass, once for the queries and once
// for the keys, so that each sum is that of one block.
#include "ops/attention/cuda/row_attention.h"
#include "ops/attention/cuda/tiles.cu.h"

namespace renga {
namespace {

using namespace attention;

// Each block computes a tile of rows and a chunk of `columns` columns of a head.
struct Blocks {
  std::int64_t count, tiles, chunks;
  int columns;

  struct Block {
    std::int64_t head, row, column;
  };
  __device__ Block at(std::int64_t i) const {
    return {i / chunks / tiles, i / chunks % tiles * kTile, i % chunks * columns};
  }
  cuda::Grid grid() const {
    constexpr std::int64_t kMostBlocks = 1 << 20;
    return {static_cast<unsigned>(std::min(count, kMostBlocks)), cuda::kThreads, kSharedBytes};
  }
};

// Returns blocks with at least one chunk of columns, as the softmax is needed without any.
Blocks blocks_of(const Array& x, std::int64_t columns, int columns_of_chunk) {
  const std::int64_t tiles = (x.shape(2) + kTile - 1) / kTile;
  const std::int64_t chunks =
      std::max<std::int64_t>((columns + columns_of_chunk - 1) / columns_of_chunk, 1);
  return {x.shape(0) * x.shape(1) * tiles * chunks, tiles, chunks, columns_of_chunk};
}

struct Larger {
  __device__ float operator()(float a, float b) const { return a > b ? a : b; }
};
struct Sum {
  __device__ float operator()(float a, float b) const { return a + b; }
};

template <int columns, class T>
__device__ void store(const float (&sums)[kEach][columns], const HeadRows<T>& to, std::int64_t row,
                      std::int64_t column) {
  const Lane lane;
  for (int i = 0; i < kEach; ++i) {
    for (int c = 0; c < columns; ++c) {
      to.store(row + lane.row(i), column + lane.column(c), sums[i][c]);
    }
  }
}

// The softmax of a thread's rows over all tiles so far.
template <int columns>
struct Softmax {
  float top[kEach], total[kEach] = {}, sums[kEach][columns] = {};

  __device__ Softmax() {
    for (float& value : top) value = -std::numeric_limits<float>::infinity();
  }

  // Replaces products by exponentials, after dropout, and scales sums to the new maxima.
  __device__ void add(const Scores& scores, std::int64_t head, std::int64_t query, std::int64_t key,
                      Share& products) {
    const Lane lane;
    unrolled<kEach>([&](int i) {
      const std::int64_t row = query + lane.row(i);
      float highest = top[i], added = 0, factors[kEach];
      for (int j = 0; j < kEach; ++j) {
        products[i][j] = scores.score(products[i][j], head, row, key + lane.column(j));
        highest = Larger{}(highest, products[i][j]);
      }
      highest = fold_lanes<kSide>(highest, Larger{});
      const float base = highest == -std::numeric_limits<float>::infinity() ? 0.0f : highest;
      const float shrink = std::exp(top[i] - base);
      dropout_factors(scores, head, row, key, lane.tx, factors);
      for (int j = 0; j < kEach; ++j) {
        const float exponential = std::exp(products[i][j] - base);
        added += exponential;
        products[i][j] = exponential * factors[j];
      }
      top[i] = highest;
      total[i] = total[i] * shrink + fold_lanes<kSide>(added, Sum{});
      for (float& sum : sums[i]) sum *= shrink;
    });
  }
};

// A multiprocessor runs one block at once: with two, registers would spill.
constexpr int kBlocksAtOnce = 1;

template <class T, int columns>
__global__ void __launch_bounds__(cuda::kThreads, kBlocksAtOnce)
    attend(Operands<T> a, Heads<T> y, float* log_sums, Blocks blocks) {
  float* const staged = cuda::shared_memory<float>();
  float* const weights = staged + kStaged;
  const Lane lane;
  for (std::int64_t n = blockIdx.x; n < blocks.count; n += gridDim.x) {
    const auto [head, query, column] = blocks.at(n);
    const auto q = a.q.head(head), k = a.k.head(head), v = a.v.head(head);
    Softmax<columns> softmax;
    for (std::int64_t key = 0; key < a.scores.last_key(query + kTile); key += kTile) {
      Share products;
      multiply_rows(q, query, k, key, staged, products);
      softmax.add(a.scores, head, query, key, products);
      put_weights(products, weights);
      accumulate<false>(weights, v, key, column, staged, softmax.sums);
    }
    unrolled<kEach>([&](int i) {
      const float total = softmax.total[i];
      for (float& sum : softmax.sums[i]) sum = total == 0 ? 0.0f : sum / total;
      const std::int64_t row = query + lane.row(i);
      if (column == 0 && lane.tx == 0 && row < a.scores.queries) {
        log_sums[head * a.scores.queries + row] =
            total == 0 ? -std::numeric_limits<float>::infinity() : softmax.top[i] + std::log(total);
      }
    });
    store(softmax.sums, y.head(head), query, column);
  }
}

// Finds the sum of gy y of each query, which is that of weights times their gradients. A warp
// computes each.
template <class T>
__global__ void find_means(Heads<const T> y, Heads<const T> gy, std::int64_t count, float* means) {
  const int lane = static_cast<int>(threadIdx.x) % cuda::kWarp;
  const std::int64_t step = cuda::thread_count() / cuda::kWarp;
  for (std::int64_t n = cuda::thread_index() / cuda::kWarp; n < count; n += step) {
    const auto a = y.head(n / y.rows), b = gy.head(n / y.rows);
    double sum = 0;
    for (std::int64_t c = lane; c < y.columns; c += cuda::kWarp) {
      sum += double(a.load(n % y.rows, c)) * double(b.load(n % y.rows, c));
    }
    for (int lanes = 1; lanes < cuda::kWarp; lanes *= 2) {
      sum += __shfl_xor_sync(0xffffffffu, sum, lanes);
    }
    if (lane == 0) means[n] = static_cast<float>(sum);
  }
}

// The weights of a tile after dropout, and the gradients of the products of queries and keys.
template <class T>
__device__ void differentiate(const Operands<T>& a, const Results<T>& results, std::int64_t head,
                              std::int64_t query, std::int64_t key, float* staged, Share& weights,
                              Share& grads) {
  multiply_rows(a.q.head(head), query, a.k.head(head), key, staged, weights);
  multiply_rows(results.gy.head(head), query, a.v.head(head), key, staged, grads);
  const Lane lane;
  unrolled<kEach>([&](int i) {
    const std::int64_t row = query + lane.row(i), at = head * a.scores.queries + row;
    const bool exists = row < a.scores.queries;
    const float log_sum = exists ? finite(results.log_sums[at]) : 0.0f;
    const float mean = exists ? results.means[at] : 0.0f;
    float factors[kEach];
    dropout_factors(a.scores, head, row, key, lane.tx, factors);
    for (int j = 0; j < kEach; ++j) {
      const float score = a.scores.score(weights[i][j], head, row, key + lane.column(j));
      const float p = std::exp(score - log_sum);
      grads[i][j] = p * (grads[i][j] * factors[j] - mean) * a.scores.scale;
      weights[i][j] = p * factors[j];
    }
  });
}

template <class T, int columns>
__global__ void __launch_bounds__(cuda::kThreads, kBlocksAtOnce)
    query_grads(Operands<T> a, Results<T> results, Heads<T> gq, Blocks blocks) {
  float* const staged = cuda::shared_memory<float>();
  float* const weights = staged + kStaged;
  for (std::int64_t n = blockIdx.x; n < blocks.count; n += gridDim.x) {
    const auto [head, query, column] = blocks.at(n);
    float sums[kEach][columns] = {};
    for (std::int64_t key = 0; key < a.scores.last_key(query + kTile); key += kTile) {
      Share p, g;
      differentiate(a, results, head, query, key, staged, p, g);
      put_weights(g, weights);
      accumulate<false>(weights, a.k.head(head), key, column, staged, sums);
    }
    store(sums, gq.head(head), query, column);
  }
}

template <class T, int columns>
__global__ void __launch_bounds__(cuda::kThreads, kBlocksAtOnce)
    key_grads(Operands<T> a, Results<T> results, Heads<T> gk, Heads<T> gv, Blocks blocks) {
  float* const staged = cuda::shared_memory<float>();
  float* const weights = staged + kStaged;
  for (std::int64_t n = blockIdx.x; n < blocks.count; n += gridDim.x) {
    const auto [head, key, column] = blocks.at(n);
    float key_sums[kEach][columns] = {}, value_sums[kEach][columns] = {};
    const std::int64_t first = a.scores.is_causal ? key : 0;
    for (std::int64_t query = first; query < a.scores.queries; query += kTile) {
      Share p, g;
      differentiate(a, results, head, query, key, staged, p, g);
      put_weights(p, weights);
      accumulate<true>(weights, results.gy.head(head), query, column, staged, value_sums);
      put_weights(g, weights);
      accumulate<true>(weights, a.q.head(head), query, column, staged, key_sums);
    }
    store(key_sums, gk.head(head), key, column);
    store(value_sums, gv.head(head), key, column);
  }
}

// Calls visit(Type<T>{}, columns of a thread): more of them where rows are long, so that scores
// are computed for fewer chunks.
template <class Visit>
void visit_types(const Attention& a, const Visit& visit) {
  const std::int64_t longest = std::max(a.q.shape(3), a.v.shape(3));
  visit_dtype(a.q.dtype(), [&]<class T>(Type<T> type) {
    if constexpr (is_floating<T> && !std::is_same_v<T, double>) {
      if (longest <= 4 * kSide) return visit(type, std::integral_constant<int, 4>{});
      visit(type, std::integral_constant<int, 8>{});
    }
  });
}

void forward_cuda(const Attention& a, const Array& y, const Array& log_sums) {
  if (suit_row_blocks({&a.q, &a.k, &a.v, &y})) return forward_by_row_blocks(a, y, log_sums);
  visit_types(a, [&]<class T, int columns>(Type<T>, std::integral_constant<int, columns>) {
    const Blocks blocks = blocks_of(y, y.shape(3), columns * kSide);
    if (blocks.count == 0) return;
    cuda::launch(y.device(), blocks.grid(), attend<T, columns>, Operands<T>(a), Heads<T>(y),
                 log_sums.as<float>(), blocks);
  });
}

void backward_cuda(const Attention& a, const Array& y, const Array& log_sums, const Array& gy,
                   const Array& gq, const Array& gk, const Array& gv) {
  const Array means = empty(log_sums.shape(), Dtype::float32, y.device());
  visit_types(a, [&]<class T, int columns>(Type<T>, std::integral_constant<int, columns>) {
    if (means.size() > 0) {
      cuda::launch(y.device(), {cuda::grid_for(means.size() * cuda::kWarp).blocks}, find_means<T>,
                   Heads<const T>(y), Heads<const T>(gy), means.size(), means.as<float>());
    }
    if (suit_row_blocks({&a.q, &a.k, &a.v, &gy, &gq, &gk, &gv})) {
      return backward_by_row_blocks(a, log_sums, means, gy, gq, gk, gv);
    }
    const Operands<T> operands(a);
    const Results<T> results{Heads<const T>(gy), log_sums.as<const float>(),
                             means.as<const float>()};
    const Blocks of_queries = blocks_of(gq, gq.shape(3), columns * kSide);
    if (of_queries.count > 0) {
      cuda::launch(y.device(), of_queries.grid(), query_grads<T, columns>, operands, results,
                   Heads<T>(gq), of_queries);
    }
    const Blocks of_keys = blocks_of(gk, std::max(gk.shape(3), gv.shape(3)), columns * kSide);
    if (of_keys.count > 0) {
      cuda::launch(y.device(), of_keys.grid(), key_grads<T, columns>, operands, results,
                   Heads<T>(gk), Heads<T>(gv), of_keys);
    }
  });
}

[[maybe_unused]] const bool registered =
    attention_kernels.add(cuda::number(), {forward_cuda, backward_cuda});

}  // namespace
}  // namespace renga
