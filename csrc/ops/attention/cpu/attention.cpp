// Tiles of queries against tiles of keys. Work is divided by shapes alone and sums have one order,
// so that bits do not depend on the number of threads.
#include "ops/attention/attention.h"

#include "devices/gil_release.h"
#include "devices/parallel.h"
#include "devices/rounding.h"
#include "ops/attention/cpu/scores.h"
#include "ops/matmul/cpu/selection.h"
#include "ops/matmul/precision.h"
#include "simd/sum_each.h"

namespace renga {
namespace {

using namespace attention;

struct Sizes {
  std::int64_t heads, queries, keys, depth, width;
  std::int64_t padded_depth, padded_width, query_tiles, key_tiles;

  explicit Sizes(const Attention& a)
      : heads(a.q.shape(0) * a.q.shape(1)),
        queries(a.q.shape(2)),
        keys(a.k.shape(2)),
        depth(a.q.shape(3)),
        width(a.v.shape(3)),
        padded_depth(round_up(std::max<std::int64_t>(depth, 1), kPanel)),
        padded_width(round_up(std::max<std::int64_t>(width, 1), kPanel)),
        query_tiles(divide_up(queries, kRows)),
        key_tiles(divide_up(keys, kKeys)) {}

  // Returns the cost of a product of a tile of queries with all keys, in vectors of products.
  std::int64_t cost() const { return kRows * keys * (depth + width) / 8; }
};

Dropout dropout_of(const Attention& a) {
  if (a.dropout == 0) return {};
  return {a.seed, dropout_threshold(a.dropout), static_cast<float>(1 / (1 - a.dropout)),
          divide_up(a.k.shape(2), kPhiloxBlock)};
}

// The scores of queries from `query` on against keys from `key` on.
Tile tile_of(const Attention& a, const Sizes& size, const Dropout& dropout, std::int64_t head,
             std::int64_t query, std::int64_t key) {
  const std::int64_t rows = std::min(kRows, size.queries - query);
  const std::int64_t last = a.is_causal ? std::min(size.keys, query + rows) : size.keys;
  return {query,
          rows,
          padded_rows(rows),
          key,
          std::clamp<std::int64_t>(last - key, 0, kKeys),
          head * size.queries,
          static_cast<float>(a.scale),
          a.is_causal,
          HeadMask(a.mask, head),
          dropout};
}

// result (+)= left right, where left has so many panels, right is (panels kPanel, columns), and
// `right_rows` apart the panels of right begin.
template <class Number>
void multiply(const Number* left, std::int64_t panels, const Number* right, std::int64_t right_rows,
              std::int64_t columns, float* result, std::int64_t rows, bool accumulate) {
  packed_gemms(left, rows * kPanel, panels, right, kPanel * right_rows, divide_up(columns, kPanel),
               result, kPanel * rows, rows, accumulate);
}

// For so few queries, keys and values are read once, where they are: packing them takes longer.
constexpr std::int64_t kFewQueries = 4;

// The scores of a row of `depth` numbers against so many keys, from a row of panels that are `step`
// apart on.
template <class T>
void score_row(const float* query, const Rows<const T>& keys, std::int64_t count,
               std::int64_t depth, float* scores, std::int64_t step) {
  simd::dispatch_for<T>([=](auto target) __attribute__((always_inline)) {
    using L = simd::Vector<decltype(target), float>;
    for (std::int64_t key = 0; key < count; key += simd::kSums) {
      const T* rows[simd::kSums];
      for (std::int64_t i = 0; i < simd::kSums; ++i) {
        rows[i] = keys.row(std::min(key + i, count - 1));
      }
      typename L::V sums[simd::kSums] = {};
      std::int64_t c = 0;
      for (; c + L::width <= depth; c += L::width) {
        const typename L::V numbers = L::load(query + c);
#pragma GCC unroll 4
        for (int i = 0; i < simd::kSums; ++i) sums[i] += numbers * L::load(rows[i] + c);
      }
      simd::Sums totals = simd::sum_each<decltype(target)>(sums);
      for (; c < depth; ++c) {
        for (int i = 0; i < simd::kSums; ++i)
          totals[i] += query[c] * static_cast<float>(rows[i][c]);
      }
      for (int i = 0; i < simd::kSums; ++i) {
        scores[(key + i) / kPanel * step + (key + i) % kPanel] = totals[i];
      }
    }
  });
}

// Adds so many values, times the numbers that a row of panels begins with, to such a row.
template <class T>
void add_values(const float* weights, const Rows<const T>& values, std::int64_t count,
                std::int64_t width, float* sums, std::int64_t step) {
  simd::dispatch_for<T>([=](auto target) __attribute__((always_inline)) {
    using L = simd::Vector<decltype(target), float>;
    constexpr int vectors = kPanel / L::width;
    for (std::int64_t c = 0; c < width; c += kPanel) {
      float* const panel = sums + c / kPanel * step;
      const std::int64_t columns = std::min(kPanel, width - c);
      typename L::V sum[vectors];
      for (int v = 0; v < vectors; ++v) sum[v] = L::load(panel + v * L::width);
      for (std::int64_t key = 0; key < count; ++key) {
        const T* row = values.row(key) + c;
        T padded[kPanel] = {};
        if (columns < kPanel) row = std::copy_n(row, columns, padded) - columns;
        const typename L::V weight = L::broadcast(weights + key / kPanel * step + key % kPanel);
        for (int v = 0; v < vectors; ++v) sum[v] += weight * L::load(row + v * L::width);
      }
      for (int v = 0; v < vectors; ++v) L::store(sum[v], panel + v * L::width);
    }
  });
}

template <class T, class Number>
class Forward {
 public:
  Forward(const Attention& a, const Array& y, const Array& log_sums)
      : a_(a),
        y_(y),
        log_sums_(log_sums.as<float>()),
        size_(a),
        dropout_(dropout_of(a)),
        padded_keys_(round_up(size_.keys, kPanel)),
        packed_keys_(size_.queries <= kFewQueries ? 0 : padded_keys_),
        packed_(packed_keys_ * std::max(size_.padded_depth, size_.padded_width)),
        keys_(packed_keys_ * size_.padded_depth),
        values_(packed_keys_ * std::max(size_.padded_depth, size_.padded_width)),
        queries_(kRows * size_.padded_depth),
        few_queries_(kFewQueries * size_.padded_depth),
        scores_(kRows * kKeys),
        numbers_(kRows * kKeys),
        sums_(kRows * size_.padded_width) {}

  void run(std::int64_t head, std::int64_t query) {
    const bool is_few = packed_keys_ == 0;
    if (!is_few && head != packed_head_) pack_head(head);
    Tile tile = tile_of(a_, size_, dropout_, head, query, 0);
    const std::int64_t rows = tile.padded_rows, depth = size_.padded_depth;
    pack<T>(rows_of_head<const T>(a_.q, head).from(query), tile.rows, size_.depth, rows,
            queries_.get());
    std::fill_n(sums_.get(), rows * size_.padded_width, 0.0f);
    Softmax softmax;
    std::fill_n(softmax.top, kRows, kNothing);
    std::fill_n(softmax.total, kRows, 0.0f);
    for (std::int64_t key = 0; key < size_.keys; key += kKeys) {
      tile = tile_of(a_, size_, dropout_, head, query, key);
      if (tile.keys == 0) break;
      if (is_few) {
        score_few(tile, head);
        softmax_tile(tile, scores_.get(), softmax, sums_.get(), size_.padded_width);
        add_few(tile, head);
        continue;
      }
      multiply<Number>(queries_.get(), depth / kPanel, keys_.get() + key * depth, depth,
                       tile.panels() * kPanel, scores_.get(), rows, false);
      softmax_tile(tile, scores_.get(), softmax, sums_.get(), size_.padded_width);
      multiply<Number>(as_numbers(scores_.get(), tile.size(), numbers_.get()), tile.panels(),
                       values_.get() + key * kPanel, padded_keys_, size_.padded_width, sums_.get(),
                       rows, true);
    }
    finish(tile, softmax);
  }

 private:
  void score_few(const Tile& tile, std::int64_t head) {
    for (std::int64_t r = 0; r < tile.rows; ++r) {
      float* const query = few_queries_.get() + r * size_.padded_depth;
      if (tile.key == 0) {
        pack<T>(rows_of_head<const T>(a_.q, head).from(tile.query + r), 1, size_.depth, 1, query);
      }
      score_row<T>(query, rows_of_head<const T>(a_.k, head).from(tile.key), tile.keys, size_.depth,
                   scores_.get() + r * kPanel, tile.padded_rows * kPanel);
    }
  }

  void add_few(const Tile& tile, std::int64_t head) {
    for (std::int64_t r = 0; r < tile.rows; ++r) {
      add_values<T>(scores_.get() + r * kPanel, rows_of_head<const T>(a_.v, head).from(tile.key),
                    tile.keys, size_.width, sums_.get() + r * kPanel, tile.padded_rows * kPanel);
    }
  }

  void pack_head(std::int64_t head) {
    pack<T>(rows_of_head<const T>(a_.k, head), size_.keys, size_.depth, padded_keys_,
            packed_.get());
    transpose_panels(packed_.get(), padded_keys_, size_.padded_depth, keys_.get());
    pack<T>(rows_of_head<const T>(a_.v, head), size_.keys, size_.width, padded_keys_,
            packed_.get());
    const std::int64_t rows = padded_keys_ * size_.padded_width / kPanel;
    const Number* const values = interleaved(packed_.get(), rows, values_.get());
    if (values != values_.get()) std::swap(packed_, values_);
    packed_head_ = head;
  }

  void finish(const Tile& tile, const Softmax& softmax) {
    float factors[kRows];
    for (std::int64_t r = 0; r < tile.rows; ++r) {
      const float total = softmax.total[r];
      factors[r] = total == 0 ? 0 : 1 / total;
      log_sums_[tile.first_query + tile.query + r] =
          total == 0 ? kNothing : softmax.top[r] + std::log(total);
    }
    unpack(sums_.get(), tile.padded_rows, tile.rows, size_.width, factors,
           rows_of_head<T>(y_, tile.first_query / size_.queries).from(tile.query));
  }

  const Attention& a_;
  const Array& y_;
  float* log_sums_;
  Sizes size_;
  Dropout dropout_;
  std::int64_t padded_keys_, packed_keys_, packed_head_ = -1;
  Buffer<Number> packed_, keys_, values_, queries_;
  Buffer<float> few_queries_, scores_;
  Buffer<Number> numbers_;
  Buffer<float> sums_;
};

// The backward pass of a head against some of its key tiles.
template <class T, class Number>
class Backward {
 public:
  Backward(const Attention& a, const Array& y, const Array& log_sums, const Array& gy)
      : a_(a),
        y_(y),
        gy_(gy),
        log_sums_(log_sums.as<const float>()),
        size_(a),
        dropout_(dropout_of(a)),
        packed_(kKeys * std::max(size_.padded_depth, size_.padded_width)),
        keys_(kKeys * size_.padded_depth),
        keys_transposed_(kKeys * size_.padded_depth),
        values_transposed_(kKeys * size_.padded_width),
        queries_(kRows * size_.padded_depth),
        queries_interleaved_(kRows * size_.padded_depth),
        gys_(kRows * size_.padded_width),
        gys_interleaved_(kRows * size_.padded_width),
        numbers_(kRows * kKeys),
        numbers_interleaved_(kRows * kKeys),
        scores_(kRows * kKeys),
        grads_(kRows * kKeys),
        key_sums_(kKeys * size_.padded_depth),
        value_sums_(kKeys * size_.padded_width),
        means_(size_.queries) {}

  // Adds to gq, (queries, padded_depth) in panels for each tile, and writes rows of gk and gv.
  void run(std::int64_t head, std::int64_t begin, std::int64_t end, float* gq, const Array& gk,
           const Array& gv) {
    find_means(head);
    for (std::int64_t key = begin; key < end; key += kKeys) {
      const std::int64_t count = std::min(kKeys, size_.keys - key);
      const std::int64_t padded = round_up(count, kPanel);
      pack_keys(head, key, count, padded);
      std::fill_n(key_sums_.get(), padded * size_.padded_depth, 0.0f);
      std::fill_n(value_sums_.get(), padded * size_.padded_width, 0.0f);
      for (std::int64_t query = 0; query < size_.queries; query += kRows) {
        const Tile tile = tile_of(a_, size_, dropout_, head, query, key);
        if (tile.keys > 0) add_tile(head, tile, padded, gq + query * size_.padded_depth);
      }
      unpack(key_sums_.get(), padded, count, size_.depth, nullptr,
             rows_of_head<T>(gk, head).from(key));
      unpack(value_sums_.get(), padded, count, size_.width, nullptr,
             rows_of_head<T>(gv, head).from(key));
    }
  }

 private:
  // Finds the sum of gy y of each query, which is that of weights times their gradients.
  void find_means(std::int64_t head) {
    const auto ys = rows_of_head<const T>(y_, head), gys = rows_of_head<const T>(gy_, head);
    for (std::int64_t i = 0; i < size_.queries; ++i) {
      // As a single sum, each addition would wait for the one before.
      constexpr std::int64_t kSums = 8;
      double sums[kSums] = {};
      const T *const y = ys.row(i), *const gy = gys.row(i);
      const auto add = [&](std::int64_t c, std::int64_t k) {
        sums[k] += static_cast<double>(static_cast<float>(y[c])) * static_cast<float>(gy[c]);
      };
      std::int64_t c = 0;
      for (; c + kSums <= size_.width; c += kSums) {
        for (std::int64_t k = 0; k < kSums; ++k) add(c + k, k);
      }
      for (; c < size_.width; ++c) add(c, 0);
      means_.get()[i] = static_cast<float>(((sums[0] + sums[1]) + (sums[2] + sums[3])) +
                                           ((sums[4] + sums[5]) + (sums[6] + sums[7])));
    }
  }

  void pack_keys(std::int64_t head, std::int64_t key, std::int64_t count, std::int64_t padded) {
    Number* const packed = packed_.get();
    pack<T>(rows_of_head<const T>(a_.v, head).from(key), count, size_.width, padded, packed);
    transpose_panels(packed, padded, size_.padded_width, values_transposed_.get());
    pack<T>(rows_of_head<const T>(a_.k, head).from(key), count, size_.depth, padded, packed);
    transpose_panels(packed, padded, size_.padded_depth, keys_transposed_.get());
    right_keys_ = interleaved(packed, padded * size_.padded_depth / kPanel, keys_.get());
  }

  // right (columns, kPanel) += left^T of panels, for all panels of both.
  void add_transposed(const Number* left, std::int64_t panels, const Number* right,
                      std::int64_t columns, std::int64_t rows, std::int64_t padded, float* sums) {
    for (std::int64_t p = 0; p < panels; ++p) {
      packed_gemms_transposed(left + p * rows * kPanel, right, rows, rows * kPanel,
                              divide_up(columns, kPanel), sums + p * kPanel * kPanel,
                              padded * kPanel);
    }
  }

  void add_tile(std::int64_t head, const Tile& tile, std::int64_t padded, float* gq) {
    const std::int64_t rows = tile.padded_rows, panels = tile.panels();
    const std::int64_t depth = size_.padded_depth, width = size_.padded_width;
    pack<T>(rows_of_head<const T>(a_.q, head).from(tile.query), tile.rows, size_.depth, rows,
            queries_.get());
    pack<T>(rows_of_head<const T>(gy_, head).from(tile.query), tile.rows, size_.width, rows,
            gys_.get());
    multiply<Number>(queries_.get(), depth / kPanel, keys_transposed_.get(), depth, panels * kPanel,
                     scores_.get(), rows, false);
    multiply<Number>(gys_.get(), width / kPanel, values_transposed_.get(), width, panels * kPanel,
                     grads_.get(), rows, false);
    softmax_grad_tile(tile, scores_.get(), grads_.get(), log_sums_ + tile.first_query + tile.query,
                      means_.get() + tile.query);
    const Number* const weights = as_numbers(scores_.get(), tile.size(), numbers_.get());
    add_transposed(interleaved(weights, panels * rows, numbers_interleaved_.get()), panels,
                   interleaved(gys_.get(), rows * width / kPanel, gys_interleaved_.get()), width,
                   rows, padded, value_sums_.get());
    const Number* const grads = as_numbers(grads_.get(), tile.size(), numbers_.get());
    multiply<Number>(grads, panels, right_keys_, padded, depth, gq, rows, true);
    add_transposed(interleaved(grads, panels * rows, numbers_interleaved_.get()), panels,
                   interleaved(queries_.get(), rows * depth / kPanel, queries_interleaved_.get()),
                   depth, rows, padded, key_sums_.get());
  }

  const Attention& a_;
  const Array &y_, &gy_;
  const float* log_sums_;
  Sizes size_;
  Dropout dropout_;
  Buffer<Number> packed_, keys_, keys_transposed_, values_transposed_;
  Buffer<Number> queries_, queries_interleaved_, gys_, gys_interleaved_;
  Buffer<Number> numbers_, numbers_interleaved_;
  Buffer<float> scores_, grads_, key_sums_, value_sums_, means_;
  const Number* right_keys_ = nullptr;
};

template <class T, class Number>
void forward(const Attention& a, const Array& y, const Array& log_sums) {
  const Sizes size(a);
  const std::int64_t tiles = size.query_tiles;
  parallel_for(size.heads * tiles, size.cost(), [&](std::int64_t begin, std::int64_t end) {
    Forward<T, Number> heads(a, y, log_sums);
    for (std::int64_t i = begin; i < end; ++i) {
      // First and last tiles in turn: with a causal mask, later ones take longer.
      const std::int64_t t = i % tiles, tile = t % 2 == 0 ? t / 2 : tiles - 1 - t / 2;
      heads.run(i / tiles, tile * kRows);
    }
  });
}

// Few heads are divided along their keys; each part has its own sums for gq.
std::int64_t parts_of_head(const Sizes& size) {
  constexpr std::int64_t wanted = 16;
  return std::clamp<std::int64_t>(wanted / std::max<std::int64_t>(size.heads, 1), 1,
                                  std::max<std::int64_t>(size.key_tiles, 1));
}

template <class T, class Number>
void backward(const Attention& a, const Array& y, const Array& log_sums, const Array& gy,
              const Array& gq, const Array& gk, const Array& gv) {
  const Sizes size(a);
  const std::int64_t parts = parts_of_head(size), units = size.heads * parts;
  const std::int64_t each = size.query_tiles * kRows * size.padded_depth;
  const Array sums = empty({units * each}, Dtype::float32);
  const std::int64_t cost = 5 * size.cost() * size.query_tiles / (2 * parts);
  parallel_for(units, cost, [&](std::int64_t begin, std::int64_t end) {
    Backward<T, Number> heads(a, y, log_sums, gy);
    for (std::int64_t i = begin; i < end; ++i) {
      const auto first_key = [&](std::int64_t part) {
        return std::min(size.keys, part * size.key_tiles / parts * kKeys);
      };
      float* const sum = sums.as<float>() + i * each;
      std::fill_n(sum, each, 0.0f);
      heads.run(i / parts, first_key(i % parts), first_key(i % parts + 1), sum, gk, gv);
    }
  });
  parallel_for(size.heads * size.query_tiles, kRows * size.depth / 8 * parts,
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t i = begin; i < end; ++i) {
                   const std::int64_t head = i / size.query_tiles;
                   const std::int64_t query = i % size.query_tiles * kRows;
                   const std::int64_t rows = std::min(kRows, size.queries - query);
                   const std::int64_t count = kRows * size.padded_depth;
                   float* const first =
                       sums.as<float>() + head * parts * each + query * size.padded_depth;
                   for (std::int64_t part = 1; part < parts; ++part) {
                     for (std::int64_t k = 0; k < count; ++k) first[k] += first[part * each + k];
                   }
                   unpack(first, padded_rows(rows), rows, size.depth, nullptr,
                          rows_of_head<T>(gq, head).from(query));
                 }
               });
}

template <class T>
void with_numbers(const auto& visit) {
  const bool is_medium = std::is_same_v<T, bfloat16> ||
                         (std::is_same_v<T, float> && compute_precision() == Precision::medium);
  // Packing uses vectors of bfloat16 numbers on tiles, too.
  if (is_medium && simd::has_bfloat16_dot_product() && bfloat16_is_faster()) {
    return visit(Type<bfloat16>{});
  }
  visit(Type<float>{});
}

template <class Visit>
void visit_types(Dtype dtype, const Visit& visit) {
  visit_dtype(dtype, [&]<class T>(Type<T>) {
    if constexpr (is_floating<T> && !std::is_same_v<T, double>) {
      with_numbers<T>([&]<class Number>(Type<Number>) { visit(Type<T>{}, Type<Number>{}); });
    }
  });
}

void forward_cpu(const Attention& a, const Array& y, const Array& log_sums) {
  const GilRelease work;
  visit_types(y.dtype(), [&]<class T, class Number>(Type<T>, Type<Number>) {
    forward<T, Number>(a, y, log_sums);
  });
}

void backward_cpu(const Attention& a, const Array& y, const Array& log_sums, const Array& gy,
                  const Array& gq, const Array& gk, const Array& gv) {
  const GilRelease work;
  visit_types(y.dtype(), [&]<class T, class Number>(Type<T>, Type<Number>) {
    backward<T, Number>(a, y, log_sums, gy, gq, gk, gv);
  });
}

[[maybe_unused]] const bool registered = attention_kernels.add(0, {forward_cpu, backward_cpu});

}  // namespace
}  // namespace renga
