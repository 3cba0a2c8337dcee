// Layers. Their names, initial values and results are those of the links in Python.
#pragma once

#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "nn/module.h"
#include "ops/ops.h"

namespace renga::nn {

// x in training with elements set to 0 at random and others scaled up, else x.
Variable dropout(const Variable& x, double ratio = 0.5);

struct LinearOptions {
  std::int64_t in, out;
  bool bias = true;
  Initializer W = initializers::lecun_normal(), b = initializers::constant(0);
};

// y = x Wᵀ + b, for x of some axes of samples and others that multiply to `in`.
class Linear : public Module {
 public:
  Linear(Module& parent, const std::string& name, const LinearOptions& options);
  Variable operator()(const Variable& x, int batch_axes = 1) const;

  Variable W;  // (out, in)
  std::optional<Variable> b;
};

struct EmbeddingOptions {
  std::int64_t in, out;
  Initializer W = initializers::normal(1);
  std::optional<std::int64_t> ignore_label = {};
};

// Rows of W for integers of any shape.
class Embedding : public Module {
 public:
  Embedding(Module& parent, const std::string& name, const EmbeddingOptions& options);
  Variable operator()(const Array& ids) const;

  Variable W;  // (in, out)

 private:
  std::optional<std::int64_t> ignore_label_;
};

// A number for each axis of images, or one for all of them.
class PerAxis {
 public:
  // NOLINTNEXTLINE(google-explicit-constructor): it is written as a number.
  PerAxis(std::int64_t all) : values_{all} {}
  PerAxis(std::initializer_list<std::int64_t> values) : values_(values) {}
  Dims of(int axes) const;

 private:
  Dims values_;
};

struct ConvolutionOptions {
  std::int64_t in, out;
  PerAxis kernel;
  PerAxis stride = 1, pad = 0, dilate = 1;
  std::int64_t groups = 1;
  int axes = 2;  // of images: rows and columns
  bool bias = true;
  Initializer W = initializers::lecun_normal(), b = initializers::constant(0);
};

// Convolves images (N, in, d1, ...).
class Convolution : public Module {
 public:
  Convolution(Module& parent, const std::string& name, const ConvolutionOptions& options);
  Variable operator()(const Variable& x) const;

  Variable W;  // (out, in / groups, k1, ...)
  std::optional<Variable> b;

 private:
  Window window_;
};

// The transposed convolution.
class Deconvolution : public Module {
 public:
  Deconvolution(Module& parent, const std::string& name, const ConvolutionOptions& options);
  Variable operator()(const Variable& x) const;

  Variable W;  // (in, out / groups, k1, ...)
  std::optional<Variable> b;

 private:
  Window window_;
};

struct BatchNormalizationOptions {
  std::int64_t size;
  double decay = 0.9;
  double eps = 2e-5;
};

// Normalizes by the statistics of the batch in training, else by the running ones.
class BatchNormalization : public Module {
 public:
  BatchNormalization(Module& parent, const std::string& name,
                     const BatchNormalizationOptions& options);
  Variable operator()(const Variable& x) const;

  Variable gamma, beta, avg_mean, avg_var;  // (size,)

 private:
  Variable n_ = persistent("N", zeros({}, Dtype::int64));  // of fine-tuning, which Python has
  double decay_, eps_;
};

struct LayerNormalizationOptions {
  std::int64_t size;
  double eps = 1e-6;
};

// Normalizes the last axis.
class LayerNormalization : public Module {
 public:
  LayerNormalization(Module& parent, const std::string& name,
                     const LayerNormalizationOptions& options);
  Variable operator()(const Variable& x) const;

  Variable gamma, beta;  // (size,)

 private:
  double eps_;
};

// Normalizes by the root mean square of the last axis.
class RmsNormalization : public Module {
 public:
  RmsNormalization(Module& parent, const std::string& name,
                   const LayerNormalizationOptions& options);
  Variable operator()(const Variable& x) const;

  Variable gamma;  // (size,)

 private:
  double eps_;
};

struct GroupNormalizationOptions {
  std::int64_t groups, size;
  double eps = 1e-5;
};

// Normalizes groups of channels, the second axis.
class GroupNormalization : public Module {
 public:
  GroupNormalization(Module& parent, const std::string& name,
                     const GroupNormalizationOptions& options);
  Variable operator()(const Variable& x) const;

  Variable gamma, beta;  // (size,)

 private:
  std::int64_t groups_;
  double eps_;
};

struct AttentionOptions {
  std::int64_t embed_dim, heads;
  double dropout = 0;
  bool bias = true;
};

// Attention of several heads with projections; MultiHeadAttention in Python.
class Attention : public Module {
 public:
  Attention(Module& parent, const std::string& name, const AttentionOptions& options);
  // Computes the attention of x to itself, or to a memory (N, S, embed_dim). x and the result are
  // (N, L, embed_dim).
  Variable operator()(const Variable& x, bool is_causal = false,
                      const std::optional<Variable>& mask = {}) const;
  Variable operator()(const Variable& x, const Variable& memory, bool is_causal = false,
                      const std::optional<Variable>& mask = {}) const;

  Linear in_proj, out_proj;

 private:
  // Computes the attention of projected queries, keys and values.
  Variable attend(const Variable& q, const Variable& k, const Variable& v, bool is_causal,
                  const std::optional<Variable>& mask) const;

  std::int64_t heads_;
  double dropout_;
};

// Layers and functions, one after the other. Layers are named by their numbers among layers, as a
// ChainList names its links.
class Sequential : public Module {
 public:
  using Module::Module;

  // Adds a layer, which is made from `options`.
  template <class Layer, class Options>
  Sequential& add(const Options& options) {
    auto layer = std::make_unique<Layer>(*this, std::to_string(layers_.size()), options);
    steps_.push_back([layer = layer.get()](const Variable& x) { return (*layer)(x); });
    layers_.push_back(std::move(layer));
    return *this;
  }
  Sequential& add(std::function<Variable(const Variable&)> function) {
    steps_.push_back(std::move(function));
    return *this;
  }
  Variable operator()(const Variable& x) const;

 private:
  std::vector<std::unique_ptr<Module>> layers_;
  std::vector<std::function<Variable(const Variable&)>> steps_;
};

}  // namespace renga::nn
