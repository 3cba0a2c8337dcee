// Attention: checks, forward and gradients. Its kernels, which never hold all scores at once, are
// in cpu/ and cuda/. Second-order gradients, gradients of masks, float64 and devices without
// kernels use the composition of operations, which does.
#include "ops/attention/attention.h"

#include <cmath>
#include <limits>

#include "autograd/node.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/elementwise/math.h"
#include "ops/matmul/matmul.h"
#include "ops/matmul/precision.h"
#include "ops/random/random.h"
#include "ops/reduction/reduction.h"
#include "ops/shape/manipulation.h"
#include "ops/shape/one_device.h"
#include "tensor/views.h"

namespace renga {

constinit KernelTable<AttentionKernels> attention_kernels{"attention"};

namespace {

const char* const kName = "scaled_dot_product_attention";

struct Options {
  double scale, dropout;
  bool is_causal;
  std::uint64_t seed;
  std::int64_t first_query = 0;  // of all queries, where these are some of them
};

struct Operands {
  Variable q, k, v;
  std::optional<Variable> mask;
};

Shape scores_shape(const Operands& x) {
  return {x.q.shape(0), x.q.shape(1), x.q.shape(2), x.k.shape(2)};
}

// The factors of the dropout, which the kernels draw again: 64 keys of a query from each block of
// random numbers.
Variable dropout_factors(const Operands& x, const Options& options) {
  Shape shape = scores_shape(x);
  const std::int64_t keys = shape[3];
  shape[3] = (keys + 63) / 64 * 64;
  const Array ones = full(shape, 1, x.q.dtype(), x.q.device());
  const Variable factors = dropout(Variable(ones), options.dropout, options.seed);
  return Variable(slice_view(factors.array(), 3, 0, keys));
}

// -inf for keys that a query does not read.
Variable masked_scores(const Operands& x, const Options& options) {
  const Shape shape = scores_shape(x);
  const Device device = x.q.device();
  Variable scores = multiply(matmul(x.q, x.k, false, true), options.scale);
  const Array none = full({}, -std::numeric_limits<double>::infinity(), scores.dtype(), device);
  if (options.is_causal) {
    Array allowed = empty({shape[2], shape[3]}, Dtype::bool_);
    for (std::int64_t i = 0; i < shape[2]; ++i) {
      for (std::int64_t j = 0; j < shape[3]; ++j) {
        allowed.as<bool>()[i * shape[3] + j] = j <= options.first_query + i;
      }
    }
    scores = where(to_device(allowed, device), scores, Variable(none));
  }
  if (x.mask && x.mask->dtype() == Dtype::bool_) {
    scores = where(x.mask->array(), scores, Variable(none));
  } else if (x.mask) {
    scores = add(scores, cast(*x.mask, scores.dtype()));
  }
  return scores;
}

// The least value of what is subtracted from scores: the difference of two infinities is NaN.
constexpr double kLeast = -1e30;

// The softmax of the scores, before the dropout.
Variable weights(const Operands& x, const Options& options) {
  Variable scores = masked_scores(x, options);
  const Device device = scores.device();
  if (scores.shape(3) == 0) return scores;
  // The softmax does not depend on what is subtracted from a row, so that has no gradient. In rows
  // without keys, where the maximum is -inf, all weights are 0.
  constexpr double tiny = 1e-30;
  const Array top = apply(kName, Binary::maximum, reduce(Reduction::max, scores.array(), Axes{3}),
                          full({}, kLeast, scores.dtype(), device));
  const Variable terms = exp(subtract(scores, Variable(top)));
  const Variable total = sum(terms, Axes{3}, true);
  return divide(terms, maximum(total, Variable(full({}, tiny, total.dtype(), device))));
}

// Returns the operands in float32 at least.
Operands widened(const Operands& x) {
  if (size_of(x.q.dtype()) >= size_of(Dtype::float32)) return x;
  const auto wide = [](const Variable& v) { return cast(v, Dtype::float32); };
  return {wide(x.q), wide(x.k), wide(x.v), x.mask};
}

Variable composed(const Operands& given, const Options& options) {
  const Operands x = widened(given);
  Variable p = weights(x, options);
  if (options.dropout > 0) p = multiply(p, dropout_factors(x, options));
  return cast(matmul(p, x.v), given.q.dtype());
}

// x[:, :, rows, columns].
Variable part_of(const Variable& x, Range rows, Range columns) {
  return slice(x, {{0, x.shape(0)}, {0, x.shape(1)}, rows, columns});
}

// composed for blocks of queries, each beside the keys that it may read: nearly half of the scores
// of a causal mask are not computed.
Variable composed_by_blocks(const Operands& x, const Options& options) {
  constexpr std::int64_t kQueries = 128;
  const std::int64_t queries = x.q.shape(2), depth = x.q.shape(3), width = x.v.shape(3);
  if (!options.is_causal || options.dropout > 0 || queries <= kQueries) {
    return composed(x, options);
  }
  std::optional<Variable> mask = x.mask;
  if (mask) mask = broadcast_to(*mask, scores_shape(x));
  std::vector<Variable> ys;
  for (std::int64_t first = 0; first < queries; first += kQueries) {
    const Range rows{first, std::min(kQueries, queries - first)};
    const Range keys{0, std::min(first + rows.length, x.k.shape(2))};
    Operands block{part_of(x.q, rows, {0, depth}),
                   part_of(x.k, keys, {0, depth}),
                   part_of(x.v, keys, {0, width}),
                   {}};
    if (mask) block.mask = part_of(*mask, rows, keys);
    Options own = options;
    own.first_query = first;
    ys.push_back(composed(block, own));
  }
  return concat(ys, 2);
}

// Computes the gradients of q, k, v and the mask with operations.
std::vector<Variable> composed_gradients(const Operands& given, const Options& options,
                                         const Variable& given_gy) {
  const Operands x = widened(given);
  const Variable gy = cast(given_gy, x.q.dtype());
  const Variable p = weights(x, options);
  Variable dropped = p, gp = matmul(gy, x.v, false, true);
  if (options.dropout > 0) {
    const Variable factors = dropout_factors(x, options);
    dropped = multiply(p, factors);
    gp = multiply(gp, factors);
  }
  const Variable g = multiply(p, subtract(gp, sum(multiply(p, gp), Axes{3}, true)));
  const Variable g_scaled = multiply(g, options.scale);
  std::vector<Variable> gxs{matmul(g_scaled, x.k), matmul(g_scaled, x.q, true),
                            matmul(dropped, gy, true)};
  for (Variable& gx : gxs) gx = cast(gx, given.q.dtype());
  if (x.mask && is_float(x.mask->dtype())) {
    gxs.push_back(cast(sum_to(g, x.mask->shape()), x.mask->dtype()));
  } else if (x.mask) {
    gxs.emplace_back();
  }
  return gxs;
}

// An array as kernels take it.
Array rows(const Array& x) { return x.strides()[3] == x.itemsize() ? x : copy_of(contiguous(x)); }

// Returns an array of x's shape but with so many columns, in the memory order of x, so that heads
// which are views stay views.
Array empty_rows(const Array& x, std::int64_t columns) {
  Shape shape = x.shape();
  shape[3] = columns;
  Array ordered = empty_in_order(shape, memory_order(x), x.dtype(), x.device());
  if (ordered.strides()[3] == x.itemsize()) return ordered;
  return empty(shape, x.dtype(), x.device());
}

Attention kernel_operands(const Operands& x, const Options& options) {
  Array mask;
  if (x.mask) {
    const Array& given = x.mask->array();
    mask =
        broadcast_view(kName, given.dtype() == Dtype::bool_ ? given : cast(given, Dtype::float32),
                       scores_shape(x));
  }
  return {rows(x.q.array()), rows(x.k.array()), rows(x.v.array()), mask,
          options.scale,     options.is_causal, options.dropout,   options.seed};
}

Variable fused(const Operands& x, const Options& options) {
  const Attention attention = kernel_operands(x, options);
  const Array y = empty_rows(attention.q, attention.v.shape(3));
  const Array log_sums = empty({y.shape(0), y.shape(1), y.shape(2)}, Dtype::float32, y.device());
  attention_kernels.on(y.device()).forward(attention, y, log_sums);
  std::vector<Variable> inputs{x.q, x.k, x.v};
  if (x.mask) inputs.push_back(*x.mask);
  auto back = [=](std::span<const Variable> gys, std::span<const int> wanted, Node&) {
    const bool for_mask = std::ranges::find(wanted, 3) != wanted.end();
    if (backprop_enabled() || for_mask) return composed_gradients(x, options, gys[0]);
    const Array gq = empty_rows(attention.q, attention.q.shape(3));
    const Array gk = empty_rows(attention.k, attention.k.shape(3));
    const Array gv = empty_rows(attention.v, attention.v.shape(3));
    attention_kernels.on(y.device())
        .backward(attention, y, log_sums, rows(gys[0].array()), gq, gk, gv);
    std::vector<Variable> gxs{Variable(gq), Variable(gk), Variable(gv)};
    if (x.mask) gxs.emplace_back();
    return gxs;
  };
  return record_all("ScaledDotProductAttention", {&y, 1}, inputs, std::move(back))[0];
}

// The mask where the scores are: one without a gradient is copied there, as conditions are.
std::optional<Variable> mask_on(Device device, const std::optional<Variable>& mask) {
  if (!mask || mask->device(kName) == device) return mask;
  if (mask->requires_grad()) require_one_device(kName, device, mask->device());
  return device.is_meta() ? mask : Variable(to_device(mask->array(), device), false);
}

void check(const Operands& x, const Options& options) {
  const bool have_axes = x.q.ndim() == 4 && x.k.ndim() == 4 && x.v.ndim() == 4;
  bool fits = have_axes && x.k.shape(2) == x.v.shape(2) && x.q.shape(3) == x.k.shape(3);
  for (int axis = 0; fits && axis < 2; ++axis) {
    fits = x.q.shape(axis) == x.k.shape(axis) && x.q.shape(axis) == x.v.shape(axis);
  }
  require(fits, kName, ": expected shapes (N, H, L, E), (N, H, S, E) and (N, H, S, V), got ",
          x.q.shape(), ", ", x.k.shape(), " and ", x.v.shape());
  require_one_device(kName, x.q.device(), x.k.device());
  require_one_device(kName, x.q.device(), x.v.device());
  require(is_float(x.q.dtype()) && x.q.dtype() == x.k.dtype() && x.q.dtype() == x.v.dtype(), kName,
          ": expected operands of one float dtype, got ", x.q.dtype(), ", ", x.k.dtype(), " and ",
          x.v.dtype());
  if (x.mask) {
    const Dtype dtype = x.mask->dtype();
    require(dtype == Dtype::bool_ || is_float(dtype), kName,
            ": expected a mask of bool or floats, got ", dtype);
    const Shape shape = scores_shape(x);
    require(broadcast_shapes(kName, x.mask->shape(), shape) == shape, kName,
            ": expected a mask that broadcasts to ", shape, ", got ", x.mask->shape());
  }
  require<std::invalid_argument>(options.dropout >= 0 && options.dropout < 1, kName,
                                 ": expected 0 <= dropout_p < 1, got ", options.dropout);
}

bool has_kernels(Dtype dtype, Device device) {
  return dtype != Dtype::float64 && attention_kernels.has(device);
}

Operands operands_of(const Attention& a) {
  std::optional<Variable> mask;
  if (a.mask.defined()) mask = Variable(a.mask);
  return {Variable(a.q), Variable(a.k), Variable(a.v), mask};
}

// exp(scores - log_sums), and the same after dropout.
std::array<Variable, 2> block_weights(const Operands& x, const Options& options,
                                      const Variable& log_sums) {
  const Variable finite =
      maximum(log_sums, Variable(full({}, kLeast, log_sums.dtype(), log_sums.device())));
  const Variable p = exp(subtract(masked_scores(x, options), expand_dims(finite, 3)));
  if (options.dropout == 0) return {p, p};
  return {p, multiply(p, dropout_factors(x, options))};
}

}  // namespace

AttentionBlock attend_to_block(const Attention& a) {
  const Options options{a.scale, a.dropout, a.is_causal, a.seed};
  const Operands x = operands_of(a);
  check(x, options);
  if (has_kernels(a.q.dtype(), a.q.device())) {
    const Attention rows = kernel_operands(x, options);
    const Array y = empty_rows(rows.q, rows.v.shape(3));
    const Array log_sums = empty({y.shape(0), y.shape(1), y.shape(2)}, Dtype::float32, y.device());
    attention_kernels.on(y.device()).forward(rows, y, log_sums);
    return {y, log_sums};
  }
  const Operands wide = widened(x);
  const Variable log_sums = logsumexp(masked_scores(wide, options), Axes{3});
  const Variable p = block_weights(wide, options, log_sums)[1];
  return {cast(matmul(p, wide.v), a.q.dtype()).array(), log_sums.array()};
}

std::array<Array, 3> attention_block_gradients(const Attention& a, const AttentionBlock& result,
                                               const Array& gy) {
  const Options options{a.scale, a.dropout, a.is_causal, a.seed};
  const Operands x = operands_of(a);
  check(x, options);
  if (has_kernels(a.q.dtype(), a.q.device())) {
    const Attention given = kernel_operands(x, options);
    const Array gq = empty_rows(given.q, given.q.shape(3));
    const Array gk = empty_rows(given.k, given.k.shape(3));
    const Array gv = empty_rows(given.v, given.v.shape(3));
    attention_kernels.on(gy.device())
        .backward(given, rows(result.y), contiguous(result.log_sums), rows(gy), gq, gk, gv);
    return {gq, gk, gv};
  }
  const Operands wide = widened(x);
  const Variable g_wide = cast(Variable(gy), wide.q.dtype());
  const auto [p, dropped] = block_weights(wide, options, Variable(result.log_sums));
  Variable gp = matmul(g_wide, wide.v, false, true);
  if (options.dropout > 0) gp = multiply(gp, dropout_factors(wide, options));
  const Variable y = cast(Variable(result.y), wide.q.dtype());
  const Variable mean = sum(multiply(y, g_wide), Axes{3}, true);
  const Variable g = multiply(multiply(p, subtract(gp, mean)), options.scale);
  std::array<Array, 3> gxs;
  const std::array wide_gxs{matmul(g, wide.k), matmul(g, wide.q, true),
                            matmul(dropped, g_wide, true)};
  for (std::size_t i = 0; i < 3; ++i) gxs[i] = cast(wide_gxs[i], a.q.dtype()).array();
  return gxs;
}

Variable scaled_dot_product_attention(const Variable& query, const Variable& key,
                                      const Variable& value,
                                      const std::optional<Variable>& attn_mask, double dropout_p,
                                      bool is_causal, std::optional<double> scale,
                                      std::uint64_t seed) {
  const auto [q, k, v] =
      in_one_dtype(kName, as_activation(query), as_activation(key), as_activation(value));
  const Operands x{q, k, v, mask_on(query.device(), attn_mask)};
  check(x, {1, dropout_p, is_causal, seed});
  const double depth = std::max<double>(1, static_cast<double>(x.q.shape(3)));
  const Options options{scale.value_or(1 / std::sqrt(depth)), dropout_p, is_causal, seed};
  return has_kernels(x.q.dtype(), x.q.device()) ? fused(x, options)
                                                : composed_by_blocks(x, options);
}

}  // namespace renga
