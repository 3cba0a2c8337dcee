// Operands of attention as kernels read them, and what becomes of the products of queries and keys.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

#include "devices/cuda/launch.h"
#include "devices/cuda/recording.h"
#include "ops/attention/attention.h"
#include "ops/random/philox.h"

namespace renga::attention {

// The rows of one head.
template <class T>
struct HeadRows {
  T* data;
  std::int64_t step, rows, columns;
  // Zero outside.
  __device__ float load(std::int64_t row, std::int64_t column) const {
    return row < rows && column < columns ? static_cast<float>(data[row * step + column]) : 0.0f;
  }
  __device__ void store(std::int64_t row, std::int64_t column, float value) const {
    if (row < rows && column < columns) data[row * step + column] = T(value);
  }
};

// An array (N, H, rows, columns), contiguous along the last axis.
template <class T>
struct Heads {
  explicit Heads(const Array& x)
      : data(x.as<T>()),
        heads(x.shape(1)),
        rows(x.shape(2)),
        columns(x.shape(3)),
        sample_step(x.strides()[0] / x.itemsize()),
        head_step(x.strides()[1] / x.itemsize()),
        row_step(x.strides()[2] / x.itemsize()) {}
  __device__ HeadRows<T> head(std::int64_t index) const {
    return {data + index / heads * sample_step + index % heads * head_step, row_step, rows,
            columns};
  }
  T* data;
  std::int64_t heads, rows, columns, sample_step, head_step, row_step;
};

// Scores tells what becomes of the products of queries and keys.
struct Scores {
  explicit Scores(const Attention& a)
      : heads(a.q.shape(1)),
        queries(a.q.shape(2)),
        keys(a.k.shape(2)),
        scale(static_cast<float>(a.scale)),
        is_causal(a.is_causal),
        seed(a.seed),
        threshold(dropout_threshold(a.dropout)),
        kept_scale(static_cast<float>(1 / (1 - a.dropout))) {
    if (!a.mask.defined()) return;
    mask = a.mask.data();
    mask_is_bool = a.mask.dtype() == Dtype::bool_;
    std::copy(a.mask.strides().begin(), a.mask.strides().end(), mask_steps);
  }

  // Minus infinity for a key that the query does not read.
  __device__ float score(float product, std::int64_t head, std::int64_t query,
                         std::int64_t key) const {
    constexpr float nothing = -std::numeric_limits<float>::infinity();
    if (query >= queries || key >= keys || (is_causal && key > query)) return nothing;
    const float scaled = product * scale;
    return mask == nullptr ? scaled : scaled + term(mask_at(head, query, key));
  }

  // Whether each query of a tile reads each key of it, and its scores are products times scale.
  __device__ bool are_products(std::int64_t query, int queries_of_tile, std::int64_t key,
                               int keys_of_tile) const {
    return mask == nullptr && query + queries_of_tile <= queries && key + keys_of_tile <= keys &&
           (!is_causal || key + keys_of_tile <= query + 1);
  }

  // What a tile's row of scores reads: columns from `first` to `last`, and their terms of the mask.
  struct Row {
    int first, last;
    const std::byte* mask;
    std::int64_t mask_step;
  };
  // Of a query, with keys from `key` on as columns; of a key, with queries from `query` on.
  __device__ Row row_of_query(std::int64_t head, std::int64_t query, std::int64_t key) const {
    const std::int64_t last = is_causal && query < keys ? query + 1 : keys;
    return {0, limited(query < queries ? last - key : 0), mask_at(head, query, key), mask_steps[3]};
  }
  __device__ Row row_of_key(std::int64_t head, std::int64_t key, std::int64_t query) const {
    return {is_causal ? limited(key - query) : 0, limited(key < keys ? queries - query : 0),
            mask_at(head, query, key), mask_steps[2]};
  }
  __device__ static int limited(std::int64_t columns) {
    constexpr std::int64_t kMost = 1 << 16;  // more than a tile has
    return static_cast<int>(std::clamp<std::int64_t>(columns, 0, kMost));
  }
  __device__ const std::byte* mask_at(std::int64_t head, std::int64_t query,
                                      std::int64_t key) const {
    if (mask == nullptr) return nullptr;
    return mask + head / heads * mask_steps[0] + head % heads * mask_steps[1] +
           query * mask_steps[2] + key * mask_steps[3];
  }
  // The term of the mask at an address, which is added to a score.
  __device__ float term(const std::byte* at) const {
    if (!mask_is_bool) return *reinterpret_cast<const float*>(at);
    return *reinterpret_cast<const bool*>(at) ? 0.0f : -std::numeric_limits<float>::infinity();
  }

  // The random numbers of a query and of keys lane + 16 j in the 64 of which `key` is one.
  __device__ PhiloxWords words(std::int64_t head, std::int64_t query, std::int64_t key,
                               int lane) const {
    const std::int64_t blocks = (keys + kPhiloxBlock - 1) / kPhiloxBlock;
    const std::int64_t block = (head * queries + query) * blocks + key / kPhiloxBlock;
    return philox_words(seed.get(),
                        static_cast<std::uint64_t>(block * philox_constants::kCounters + lane));
  }

  // The keys that queries below `end` read are below it.
  __device__ std::int64_t last_key(std::int64_t end) const {
    return is_causal && end < keys ? end : keys;
  }

  std::int64_t heads, queries, keys;
  float scale;
  bool is_causal, mask_is_bool = false;
  cuda::Seed seed;
  std::uint32_t threshold;
  float kept_scale;
  const std::byte* mask = nullptr;
  std::int64_t mask_steps[4] = {};  // in bytes
};

template <class T>
struct Operands {
  explicit Operands(const Attention& a) : scores(a), q(a.q), k(a.k), v(a.v) {}
  Scores scores;
  Heads<const T> q, k, v;
};

// Results has what the backward pass knows of the forward pass.
template <class T>
struct Results {
  Heads<const T> gy;
  const float *log_sums, *means;
};

// The logarithm of a sum of exponentials, as the difference to it is taken: finite, as that of two
// infinities would be NaN.
__device__ inline float finite(float log_sum) {
  return std::max(log_sum, -std::numeric_limits<float>::max());
}

// Calls body(0) to body(n - 1), unrolled, so that arrays indexed by it are in registers.
template <int n, class Body>
__device__ void unrolled(const Body& body) {
  [&]<int... i>(std::integer_sequence<int, i...>) { (body(i), ...); }
  (std::make_integer_sequence<int, n>());
}

// The fold of the values of `lanes` threads that follow each other; all of them get it.
template <int lanes, class Fold>
__device__ float fold_lanes(float value, const Fold& fold) {
  for (int other = 1; other < lanes; other *= 2) {
    value = fold(value, __shfl_xor_sync(0xffffffffu, value, other));
  }
  return value;
}

}  // namespace renga::attention
