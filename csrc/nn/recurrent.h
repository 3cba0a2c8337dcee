// Recurrent layers: a step at a time, or over whole sequences.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "nn/layers.h"

namespace renga::nn {

struct LstmCellOptions {
  std::int64_t in, out;
  Initializer W = initializers::lecun_normal();  // of one gate
  double forget_bias = 1;
};

// A step of long short-term memory; StatelessLSTM in Python.
class LstmCell : public Module {
 public:
  // (N, out); an undefined one stands for zeros.
  struct State {
    Variable c, h;
  };

  LstmCell(Module& parent, const std::string& name, const LstmCellOptions& options);
  State operator()(const State& before, const Variable& x) const;

  Linear upward, lateral;
};

struct GruCellOptions {
  std::int64_t in, out;
  // These are for the layers of the input, those of the state, and the biases of both.
  Initializer W = initializers::lecun_normal(), U = initializers::lecun_normal();
  Initializer b = initializers::constant(0);
};

// A step of a gated recurrent unit; StatelessGRU in Python.
class GruCell : public Module {
 public:
  GruCell(Module& parent, const std::string& name, const GruCellOptions& options);
  // The state (N, out) after `h`; an undefined one stands for zeros.
  Variable operator()(const Variable& h, const Variable& x) const;

  Linear W_r, U_r, W_z, U_z, W, U;
};

struct RecurrentOptions {
  std::int64_t layers = 1, in, out;
  double dropout = 0;          // between layers
  bool bidirectional = false;  // outputs of both directions are side by side
  Initializer W = initializers::lecun_normal(), b = initializers::constant(0);
};

// Layers over sequences (length, in) of any lengths above 0. States are (layers directions, number
// of sequences, out), undefined ones stand for zeros, and outputs are sequences (length, directions
// out). A child has the weights w0, w1, ... and biases b0, ... of one layer and direction, those of
// the input first.
class RecurrentLayers : public Module {
 protected:
  struct Layer : Module {
    Layer(Module& parent, const std::string& name, int weights, std::int64_t below,
          const RecurrentOptions& options);
    std::vector<Variable> w, b;
  };
  // Returns the outputs and last states of one layer over sequences sorted by length.
  using RunLayer = std::function<std::vector<Variable>(const Layer& layer, const Variable& x,
                                                       std::span<const Variable> states,
                                                       const Lengths& lengths, bool backwards)>;

  RecurrentLayers(Module& parent, const std::string& name, const RecurrentOptions& options,
                  int weights, RunLayer run_layer);
  // The last states, and the outputs.
  std::pair<std::vector<Variable>, std::vector<Variable>> run(
      std::vector<Variable> states, const std::vector<Variable>& xs) const;

 private:
  RunLayer run_layer_;
  std::vector<std::unique_ptr<Layer>> layers_;
  std::int64_t out_;
  int directions_;
  double dropout_;
};

// Long short-term memory: NStepLSTM and NStepBiLSTM in Python.
class Lstm : public RecurrentLayers {
 public:
  struct Result {
    Variable h, c;
    std::vector<Variable> ys;
  };

  Lstm(Module& parent, const std::string& name, const RecurrentOptions& options);
  Result operator()(const std::vector<Variable>& xs, const Variable& h = {},
                    const Variable& c = {}) const;
};

// Layers whose state is their output.
class LayersOfOneState : public RecurrentLayers {
 public:
  struct Result {
    Variable h;
    std::vector<Variable> ys;
  };

  Result operator()(const std::vector<Variable>& xs, const Variable& h = {}) const;

 protected:
  using RecurrentLayers::RecurrentLayers;
};

// Plain recurrent layers, h = activation(W x + U h + b), where `activation` is "tanh" or "relu":
// NStepRNNTanh, NStepBiRNNTanh, NStepRNNReLU and NStepBiRNNReLU in Python.
struct Rnn : LayersOfOneState {
  Rnn(Module& parent, const std::string& name, const RecurrentOptions& options,
      const std::string& activation = "tanh");
};

// Gated recurrent units: NStepGRU and NStepBiGRU in Python.
struct Gru : LayersOfOneState {
  Gru(Module& parent, const std::string& name, const RecurrentOptions& options);
};

}  // namespace renga::nn
