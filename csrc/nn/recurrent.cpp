#include "nn/recurrent.h"

#include <algorithm>
#include <numeric>

#include "tensor/views.h"

namespace renga::nn {
namespace {

Variable zeros_like_state(const Variable& x, std::int64_t size) {
  const Shape& shape = x.shape("recurrent cell");
  require(!shape.empty(), "recurrent cell: expected x of samples, got ", shape);
  return Variable(zeros({x.shape(0), size}, x.dtype(), x.device()));
}

// `count` weights or biases from a number on, one below the other.
Variable joined(const std::vector<Variable>& all, std::size_t first, std::size_t count) {
  return concat({all.begin() + static_cast<std::ptrdiff_t>(first),
                 all.begin() + static_cast<std::ptrdiff_t>(first + count)},
                0);
}

// Joins the weights or biases of the gates i, f, a and o as lstm_layer takes them: a, i, f, o.
Variable lstm_gates(const std::vector<Variable>& all, std::size_t first) {
  return concat({all[first + 2], all[first], all[first + 1], all[first + 3]}, 0);
}

Array index_array(const std::vector<std::int64_t>& values) {
  const Array x = empty({static_cast<std::int64_t>(values.size())}, Dtype::int64);
  std::ranges::copy(values, x.as<std::int64_t>());
  return x;
}

// Sequences as operations take them: the longest first, and the samples of one step after the
// other.
class Steps {
 public:
  explicit Steps(const std::vector<Variable>& xs) : order_(xs.size()), positions_(xs.size()) {
    const auto sequence = [&](std::int64_t k) { return xs[static_cast<std::size_t>(k)]; };
    std::iota(order_.begin(), order_.end(), std::int64_t{0});
    std::ranges::stable_sort(order_, std::greater(), [&](auto k) { return sequence(k).shape(0); });
    std::vector<Variable> sorted;
    for (const std::int64_t k : order_) {
      positions_[static_cast<std::size_t>(k)] = std::ssize(sorted);
      sorted.push_back(sequence(k));
    }
    const auto steps = transpose_sequence(sorted);
    for (const Variable& step : steps) lengths_.push_back(step.shape(0));
    rows_ = concat(steps, 0);
  }

  const Variable& rows() const { return rows_; }
  // The samples of each step.
  const Lengths& lengths() const { return lengths_; }
  // States with the samples along axis 1, in the order of the steps, and back.
  Variable sorted(const Variable& states) const { return take(states, index_array(order_), 1); }
  Variable unsorted(const Variable& states) const {
    return take(states, index_array(positions_), 1);
  }
  // The sequences of rows such as those of the inputs.
  std::vector<Variable> sequences(const Variable& rows) const {
    std::vector<std::int64_t> cuts(lengths_.size());
    std::partial_sum(lengths_.begin(), lengths_.end(), cuts.begin());
    cuts.pop_back();
    const auto by_length = transpose_sequence(split_axis(rows, cuts, 0));
    std::vector<Variable> ys;
    for (const auto k : positions_) ys.push_back(by_length[static_cast<std::size_t>(k)]);
    return ys;
  }

 private:
  std::vector<std::int64_t> order_, positions_;  // of the sequences by length, and its inverse
  Lengths lengths_;
  Variable rows_;
};

}  // namespace

LstmCell::LstmCell(Module& parent, const std::string& name, const LstmCellOptions& options)
    : Module(parent, name),
      upward(*this, "upward",
             {.in = options.in, .out = 4 * options.out, .W = initializers::constant(0)}),
      lateral(*this, "lateral",
              {.in = options.out,
               .out = 4 * options.out,
               .bias = false,
               .W = initializers::constant(0)}) {
  for (std::int64_t gate = 0; gate < 4; ++gate) {
    const std::int64_t first = gate * options.out;
    options.W(slice_view(lateral.W.array(), 0, first, options.out));
    options.W(slice_view(upward.W.array(), 0, first, options.out));
  }
  // The gates a, i, f, o alternate.
  fill(slice_view(upward.b->array(), 0, 2, options.out, 4), options.forget_bias);
}

LstmCell::State LstmCell::operator()(const State& before, const Variable& x) const {
  const Variable c = before.c.defined() ? before.c : zeros_like_state(x, lateral.W.shape(1));
  std::optional<Variable> hidden;
  if (before.h.defined()) hidden = lateral(before.h);
  auto [next, h] = lstm(c, upward(x), hidden);
  return {next, h};
}

GruCell::GruCell(Module& parent, const std::string& name, const GruCellOptions& options)
    : Module(parent, name),
      W_r(*this, "W_r", {.in = options.in, .out = options.out, .W = options.W, .b = options.b}),
      U_r(*this, "U_r", {.in = options.out, .out = options.out, .W = options.U, .b = options.b}),
      W_z(*this, "W_z", {.in = options.in, .out = options.out, .W = options.W, .b = options.b}),
      U_z(*this, "U_z", {.in = options.out, .out = options.out, .W = options.U, .b = options.b}),
      W(*this, "W", {.in = options.in, .out = options.out, .W = options.W, .b = options.b}),
      U(*this, "U", {.in = options.out, .out = options.out, .W = options.U, .b = options.b}) {}

Variable GruCell::operator()(const Variable& h, const Variable& x) const {
  const Variable before = h.defined() ? h : zeros_like_state(x, U.W.shape(0));
  const Variable r = sigmoid(add(W_r(x), U_r(before))), z = sigmoid(add(W_z(x), U_z(before)));
  return linear_interpolate(z, tanh(add(W(x), U(multiply(r, before)))), before);
}

RecurrentLayers::Layer::Layer(Module& parent, const std::string& name, int weights,
                              std::int64_t below, const RecurrentOptions& options)
    : Module(parent, name) {
  for (int k = 0; k < weights; ++k) {
    const std::string number = std::to_string(k);
    const std::int64_t inputs = 2 * k < weights ? below : options.out;
    w.push_back(parameter("w" + number, {options.out, inputs}, options.W));
    b.push_back(parameter("b" + number, {options.out}, options.b));
  }
}

RecurrentLayers::RecurrentLayers(Module& parent, const std::string& name,
                                 const RecurrentOptions& options, int weights, RunLayer run_layer)
    : Module(parent, name),
      run_layer_(std::move(run_layer)),
      out_(options.out),
      directions_(options.bidirectional ? 2 : 1),
      dropout_(options.dropout) {
  require<std::invalid_argument>(options.layers >= 1,
                                 "recurrent layers: layers: expected at least "
                                 "1, got ",
                                 options.layers);
  for (std::int64_t k = 0; k < options.layers * directions_; ++k) {
    const std::int64_t below = k < directions_ ? options.in : directions_ * out_;
    layers_.push_back(std::make_unique<Layer>(*this, std::to_string(k), weights, below, options));
  }
}

std::pair<std::vector<Variable>, std::vector<Variable>> RecurrentLayers::run(
    std::vector<Variable> states, const std::vector<Variable>& xs) const {
  require<std::invalid_argument>(
      !xs.empty() &&
          std::ranges::all_of(xs, [](const auto& x) { return x.size("recurrent layers") > 0; }),
      "recurrent layers: expected sequences with steps, got ", xs.size(), " sequences");
  const Steps steps(xs);
  const Shape shape{std::ssize(layers_), std::ssize(xs), out_};
  std::vector<std::vector<Variable>> before, after(states.size());
  for (const Variable& state : states) {
    require(!state.defined() || state.shape() == shape,
            "recurrent layers: expected states of shape ", shape, ", got ",
            state.defined() ? state.shape() : Shape{});
    const Variable first = state.defined() ? steps.sorted(state)
                                           : Variable(zeros(shape, xs[0].dtype(), xs[0].device()));
    before.push_back(separate(first));
  }
  Variable rows = steps.rows();
  for (std::size_t k = 0; k < layers_.size();) {
    if (k > 0) rows = dropout(rows, dropout_);
    std::vector<Variable> outputs;
    for (int direction = 0; direction < directions_; ++direction, ++k) {
      std::vector<Variable> first;
      for (const auto& state : before) first.push_back(state[k]);
      const auto results = run_layer_(*layers_[k], rows, first, steps.lengths(), direction == 1);
      outputs.push_back(results[0]);
      for (std::size_t s = 0; s < after.size(); ++s) after[s].push_back(results[s + 1]);
    }
    rows = directions_ == 1 ? outputs[0] : concat(outputs, 1);
  }
  for (std::size_t s = 0; s < states.size(); ++s) states[s] = steps.unsorted(stack(after[s]));
  return {std::move(states), steps.sequences(rows)};
}

Lstm::Lstm(Module& parent, const std::string& name, const RecurrentOptions& options)
    : RecurrentLayers(
          parent, name, options, 8,
          [](const Layer& layer, const Variable& x, auto states, auto& lengths, bool backwards) {
            const Variable bias = add(lstm_gates(layer.b, 0), lstm_gates(layer.b, 4));
            auto [ys, h, c] = lstm_layer(linear(x, lstm_gates(layer.w, 0), bias), states[0],
                                         states[1], lstm_gates(layer.w, 4), lengths, backwards);
            return std::vector{ys, h, c};
          }) {}

Lstm::Result Lstm::operator()(const std::vector<Variable>& xs, const Variable& h,
                              const Variable& c) const {
  auto [states, ys] = run({h, c}, xs);
  return {states[0], states[1], std::move(ys)};
}

LayersOfOneState::Result LayersOfOneState::operator()(const std::vector<Variable>& xs,
                                                      const Variable& h) const {
  auto [states, ys] = run({h}, xs);
  return {states[0], std::move(ys)};
}

Rnn::Rnn(Module& parent, const std::string& name, const RecurrentOptions& options,
         const std::string& activation)
    : LayersOfOneState(
          parent, name, options, 2,
          [=](const Layer& layer, const Variable& x, auto states, auto& lengths, bool backwards) {
            const Variable inputs = linear(x, layer.w[0], add(layer.b[0], layer.b[1]));
            auto [ys, h] = rnn_layer(inputs, states[0], layer.w[1], lengths, backwards, activation);
            return std::vector{ys, h};
          }) {
  require<std::invalid_argument>(activation == "tanh" || activation == "relu",
                                 "Rnn: expected 'tanh' or 'relu', got '", activation, "'");
}

Gru::Gru(Module& parent, const std::string& name, const RecurrentOptions& options)
    : LayersOfOneState(
          parent, name, options, 6,
          [](const Layer& layer, const Variable& x, auto states, auto& lengths, bool backwards) {
            const Variable inputs = linear(x, joined(layer.w, 0, 3), joined(layer.b, 0, 3));
            auto [ys, h] = gru_layer(inputs, states[0], joined(layer.w, 3, 3),
                                     joined(layer.b, 3, 3), lengths, backwards);
            return std::vector{ys, h};
          }) {}

}  // namespace renga::nn
