#include "nn/layers.h"

#include <string>

#include "nn/numpy_random.h"

namespace renga::nn {
namespace {

std::optional<Variable> when(bool wanted, const auto& make) {
  return wanted ? std::optional<Variable>(make()) : std::nullopt;
}

// x Wᵀ + b for x with some axes of samples; the others count as one.
Variable linear(const Variable& x, const Variable& W, const std::optional<Variable>& b,
                int batch_axes) {
  if (x.ndim() == 2 && batch_axes == 1) return renga::linear(x, W, b);
  require(x.ndim() > batch_axes, "linear: expected x of more than n_batch_axes=", batch_axes,
          " axes, got ", x.shape());
  Shape rows{1, 1}, batch;
  for (int axis = 0; axis < x.ndim(); ++axis) {
    rows[axis < batch_axes ? 0 : 1] *= x.shape(axis);
    if (axis < batch_axes) batch.push_back(x.shape(axis));
  }
  require(rows[1] == W.shape(1), "linear: expected x with ", W.shape(1),
          " elements per sample for W of ", W.shape(), ", got ", rows[1], ": x of ", x.shape(),
          " with n_batch_axes=", batch_axes);
  batch.push_back(W.shape(0));
  return reshape(renga::linear(reshape(x, rows), W, b), batch);
}

// Options of a convolution's window, and the shape of its weight: (first, second, kernel...).
Window window_of(const ConvolutionOptions& o) {
  require<std::invalid_argument>(o.groups >= 1, "convolution: groups: expected at least 1, got ",
                                 o.groups);
  for (const auto& [kind, channels] : {std::pair{"output", o.out}, std::pair{"input", o.in}}) {
    require<std::invalid_argument>(channels % o.groups == 0, "convolution: expected ", kind,
                                   " channels divisible by the number of groups, got ", channels,
                                   " and ", o.groups);
  }
  return {o.stride.of(o.axes), o.pad.of(o.axes), o.dilate.of(o.axes), o.groups};
}

// E of an x of attention, (N, L, E).
std::int64_t embed_dim_of(const Variable& x) {
  const Shape& shape = x.shape("MultiHeadAttention");
  require(shape.size() == 3, "MultiHeadAttention: expected x of 3 axes, (N, L, embed_dim), got ",
          shape);
  return shape[2];
}

Shape weight_shape(std::int64_t first, std::int64_t second, const ConvolutionOptions& o) {
  Shape shape = o.kernel.of(o.axes);
  shape.insert(0, second);
  shape.insert(0, first);
  return shape;
}

}  // namespace

Variable dropout(const Variable& x, double ratio) {
  require<std::invalid_argument>(0 <= ratio && ratio < 1,
                                 "dropout: expected a ratio in [0, 1), got ", ratio);
  if (!is_training() || ratio == 0) return x;
  return renga::dropout(x, ratio, numpy_random().draw_seed());
}

Linear::Linear(Module& parent, const std::string& name, const LinearOptions& options)
    : Module(parent, name),
      W(parameter("W", {options.out, options.in}, options.W)),
      b(when(options.bias, [&] { return parameter("b", {options.out}, options.b); })) {}

Variable Linear::operator()(const Variable& x, int batch_axes) const {
  return linear(x, W, b, batch_axes);
}

Embedding::Embedding(Module& parent, const std::string& name, const EmbeddingOptions& options)
    : Module(parent, name),
      W(parameter("W", {options.in, options.out}, options.W)),
      ignore_label_(options.ignore_label) {}

Variable Embedding::operator()(const Array& ids) const { return embed_id(ids, W, ignore_label_); }

Dims PerAxis::of(int axes) const {
  require<std::invalid_argument>(values_.size() == 1 || values_.size() == axes,
                                 "convolution: expected a number or one for each of ", axes,
                                 " axes, got ", values_);
  return values_.size() == 1 ? Dims::filled(axes, values_[0]) : values_;
}

Convolution::Convolution(Module& parent, const std::string& name, const ConvolutionOptions& options)
    : Module(parent, name), window_(window_of(options)) {
  W = parameter("W", weight_shape(options.out, options.in / options.groups, options), options.W);
  b = when(options.bias, [&] { return parameter("b", {options.out}, options.b); });
}

Variable Convolution::operator()(const Variable& x) const {
  return W.ndim() == 4 ? convolution_2d(x, W, b, window_) : convolution_nd(x, W, b, window_);
}

Deconvolution::Deconvolution(Module& parent, const std::string& name,
                             const ConvolutionOptions& options)
    : Module(parent, name), window_(window_of(options)) {
  W = parameter("W", weight_shape(options.in, options.out / options.groups, options), options.W);
  b = when(options.bias, [&] { return parameter("b", {options.out}, options.b); });
}

Variable Deconvolution::operator()(const Variable& x) const {
  return W.ndim() == 4 ? deconvolution_2d(x, W, b, window_) : deconvolution_nd(x, W, b, window_);
}

BatchNormalization::BatchNormalization(Module& parent, const std::string& name,
                                       const BatchNormalizationOptions& options)
    : Module(parent, name),
      gamma(parameter("gamma", {options.size}, initializers::constant(1))),
      beta(parameter("beta", {options.size}, initializers::constant(0))),
      avg_mean(persistent("avg_mean", zeros({options.size}, Dtype::float32))),
      avg_var(persistent("avg_var", full({options.size}, 1, Dtype::float32))),
      decay_(options.decay),
      eps_(options.eps) {}

Variable BatchNormalization::operator()(const Variable& x) const {
  if (!is_training()) return fixed_batch_normalization(x, gamma, beta, avg_mean, avg_var, eps_);
  return batch_normalization(x, gamma, beta, eps_, OutputArray{avg_mean.array()},
                             OutputArray{avg_var.array()}, decay_);
}

LayerNormalization::LayerNormalization(Module& parent, const std::string& name,
                                       const LayerNormalizationOptions& options)
    : Module(parent, name),
      gamma(parameter("gamma", {options.size}, initializers::constant(1))),
      beta(parameter("beta", {options.size}, initializers::constant(0))),
      eps_(options.eps) {}

Variable LayerNormalization::operator()(const Variable& x) const {
  return layer_normalization(x, gamma, beta, eps_);
}

RmsNormalization::RmsNormalization(Module& parent, const std::string& name,
                                   const LayerNormalizationOptions& options)
    : Module(parent, name),
      gamma(parameter("gamma", {options.size}, initializers::constant(1))),
      eps_(options.eps) {}

Variable RmsNormalization::operator()(const Variable& x) const {
  return rms_normalization(x, gamma, eps_);
}

GroupNormalization::GroupNormalization(Module& parent, const std::string& name,
                                       const GroupNormalizationOptions& options)
    : Module(parent, name),
      gamma(parameter("gamma", {options.size}, initializers::constant(1))),
      beta(parameter("beta", {options.size}, initializers::constant(0))),
      groups_(options.groups),
      eps_(options.eps) {}

Variable GroupNormalization::operator()(const Variable& x) const {
  return group_normalization(x, groups_, gamma, beta, eps_);
}

Attention::Attention(Module& parent, const std::string& name, const AttentionOptions& options)
    : Module(parent, name),
      in_proj(*this, "in_proj",
              {.in = options.embed_dim, .out = 3 * options.embed_dim, .bias = options.bias}),
      out_proj(*this, "out_proj",
               {.in = options.embed_dim, .out = options.embed_dim, .bias = options.bias}),
      heads_(options.heads),
      dropout_(options.dropout) {
  require<std::invalid_argument>(
      heads_ > 0 && options.embed_dim % heads_ == 0,
      "MultiHeadAttention: expected num_heads that divide embed_dim, got ", heads_, " and ",
      options.embed_dim);
}

Variable Attention::operator()(const Variable& x, bool is_causal,
                               const std::optional<Variable>& mask) const {
  const std::int64_t size = embed_dim_of(x);
  const auto qkv = split_axis(in_proj(x, 2), {size, 2 * size}, 2);
  return attend(qkv[0], qkv[1], qkv[2], is_causal, mask);
}

Variable Attention::operator()(const Variable& x, const Variable& memory, bool is_causal,
                               const std::optional<Variable>& mask) const {
  const std::int64_t size = embed_dim_of(x);
  embed_dim_of(memory);
  const auto W = split_axis(in_proj.W, {size}, 0);
  const auto b = in_proj.b ? split_axis(*in_proj.b, {size}, 0) : std::vector<Variable>();
  const auto project = [&](const Variable& from, std::size_t part) {
    return linear(from, W[part], when(!b.empty(), [&] { return b[part]; }), 2);
  };
  const Variable q = project(x, 0);
  const auto kv = split_axis(project(memory, 1), {size}, 2);
  return attend(q, kv[0], kv[1], is_causal, mask);
}

Variable Attention::attend(const Variable& q, const Variable& k, const Variable& v, bool is_causal,
                           const std::optional<Variable>& mask) const {
  const std::int64_t n = q.shape(0), length = q.shape(1), size = q.shape(2);
  const auto heads = [&](const Variable& all) {  // (N, L, E) as (N, H, L, E / H)
    return transpose(reshape(all, {n, all.shape(1), heads_, size / heads_}), Axes{0, 2, 1, 3});
  };
  const double ratio = is_training() ? dropout_ : 0;
  const std::uint64_t seed = ratio > 0 ? numpy_random().draw_seed() : 0;
  const Variable y =
      scaled_dot_product_attention(heads(q), heads(k), heads(v), mask, ratio, is_causal, {}, seed);
  return out_proj(reshape(transpose(y, Axes{0, 2, 1, 3}), {n, length, size}), 2);
}

Variable Sequential::operator()(const Variable& x) const {
  require<std::runtime_error>(!steps_.empty(), "Sequential: expected a layer, got none");
  Variable y = x;
  for (const auto& step : steps_) y = step(y);
  return y;
}

}  // namespace renga::nn
