#include "ops/recurrent/recurrent.h"

#include "autograd/node.h"
#include "ops/elementwise/activation.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/elementwise/elementwise.h"
#include "ops/recurrent/recurrent_layer.h"
#include "ops/shape/manipulation.h"
#include "tensor/views.h"

namespace renga {

constinit KernelTable<RecurrentKernels> recurrent_kernels{"recurrent"};

namespace {

using Arrays = std::span<const Array>;
using Variables = std::span<const Variable>;

// The n gates of x, in blocks along axis 1, with an axis of their own in front.
Array gates_of(const Array& x, int n) {
  return transpose_view(reshape_view(x, {x.shape(0), n, x.shape(1) / n}), {1, 0, 2});
}

// Four gates that alternate along axis 1, in the same form.
Array alternating_gates_of(const Array& x) {
  Shape shape = x.shape();
  shape[1] /= 4;
  shape.insert(2, 4);
  Axes axes{2, 0, 1};
  for (int i = 3; i < shape.size(); ++i) axes.push_back(i);
  return transpose_view(reshape_view(x, shape), axes);
}

std::vector<Variable> compose_lstm(const std::vector<Variable>& gates, const Variable& c_prev) {
  const Variable c =
      add(multiply(tanh(gates[0]), sigmoid(gates[1])), multiply(sigmoid(gates[2]), c_prev));
  return {c, multiply(sigmoid(gates[3]), tanh(c))};
}

std::vector<Variable> split_gates(const Variable& x, int n) {
  std::vector<std::int64_t> cuts;
  for (int k = 1; k < n; ++k) cuts.push_back(k * x.shape(1) / n);
  return split_axis(x, cuts, 1);
}

void lstm_step(const Array& input, const Array& hidden, Arrays before, const Array& saved,
               Arrays after) {
  recurrent_kernels.on(input.device())
      .lstm(gates_of(input, 4), gates_of(hidden, 4), before[1], gates_of(saved, 4), after[1],
            after[0]);
}

void lstm_step_backward(const Array& saved, Arrays before, Arrays gstates, const Array& ginput,
                        const Array&) {
  recurrent_kernels.on(saved.device())
      .lstm_grad(gates_of(saved, 4), true, before[1], gstates[1], gstates[0], gates_of(ginput, 4),
                 gstates[1]);
}

std::vector<Variable> compose_lstm_step(const Variable& input, const Variable& hidden,
                                        Variables before) {
  const std::vector<Variable> both = compose_lstm(split_gates(add(input, hidden), 4), before[1]);
  return {both[1], both[0]};
}

constexpr Cell kLstm{.op = "lstm_layer",
                     .name = "LSTMLayer",
                     .gates = 4,
                     .saved = 4,
                     .separate_hidden = false,
                     .step = lstm_step,
                     .step_backward = lstm_step_backward,
                     .compose = compose_lstm_step};

void gru_step(const Array& input, const Array& hidden, Arrays before, const Array& saved,
              Arrays after) {
  recurrent_kernels.on(input.device())
      .gru(gates_of(input, 3), gates_of(hidden, 3), before[0], gates_of(saved, 4), after[0]);
}

void gru_step_backward(const Array& saved, Arrays before, Arrays gstates, const Array& ginput,
                       const Array& ghidden) {
  recurrent_kernels.on(saved.device())
      .gru_grad(gates_of(saved, 4), before[0], gstates[0], gates_of(ginput, 3),
                gates_of(ghidden, 3), gstates[0]);
}

std::vector<Variable> compose_gru(const Variable& input, const Variable& hidden, Variables before) {
  const auto x = split_gates(input, 3), h = split_gates(hidden, 3);
  const Variable r = sigmoid(add(x[0], h[0])), z = sigmoid(add(x[1], h[1]));
  const Variable a = tanh(add(x[2], multiply(r, h[2])));
  return {add(a, multiply(z, subtract(before[0], a)))};
}

constexpr Cell kGru{.op = "gru_layer",
                    .name = "GRULayer",
                    .gates = 3,
                    .saved = 4,
                    .separate_hidden = true,
                    .step = gru_step,
                    .step_backward = gru_step_backward,
                    .compose = compose_gru};

template <Unary activation>
void plain_step(const Array& input, const Array& hidden, Arrays, const Array& saved, Arrays after) {
  const auto& kernels = elementwise_kernels.on(input.device());
  kernels.binary(Binary::add, 0, input, hidden, saved);
  kernels.unary(activation, 0, 0, saved, saved);
  copy(saved, after[0]);
}

template <Binary activation_grad>
void plain_step_backward(const Array& saved, Arrays, Arrays gstates, const Array& ginput,
                         const Array&) {
  elementwise_kernels.on(saved.device()).binary(activation_grad, 0, saved, gstates[0], ginput);
}

template <Variable (*activation)(const Variable&)>
std::vector<Variable> compose_plain(const Variable& input, const Variable& hidden, Variables) {
  return {activation(add(input, hidden))};
}

template <Unary activation, Binary activation_grad, Variable (*operation)(const Variable&)>
constexpr Cell kPlain{.op = "rnn_layer",
                      .name = "RNNLayer",
                      .gates = 1,
                      .saved = 1,
                      .separate_hidden = false,
                      .step = plain_step<activation>,
                      .step_backward = plain_step_backward<activation_grad>,
                      .compose = compose_plain<operation>};
constexpr const Cell& kTanh = kPlain<Unary::tanh, Binary::tanh_grad, tanh>;
constexpr const Cell& kReLU = kPlain<Unary::relu, Binary::relu_grad, relu>;

bool is_activation(Dtype dtype) { return dtype == Dtype::bfloat16 || dtype == Dtype::float32; }

// Casts activations of bfloat16 and float32 to the wider dtype, and weights of another float dtype
// to that of the activations.
std::vector<Variable> promote(std::vector<Variable> xs, std::size_t n_activations) {
  Dtype dtype = xs[0].dtype();
  for (std::size_t i = 1; i < n_activations; ++i) {
    if (is_activation(dtype) && is_activation(xs[i].dtype())) {
      dtype = std::max(dtype, xs[i].dtype());
    }
  }
  for (std::size_t i = 0; i < xs.size(); ++i) {
    const bool weight = i >= n_activations && is_float(xs[i].dtype());
    const bool compatible = is_activation(dtype) && is_activation(xs[i].dtype());
    if (weight ? !compatible : compatible) xs[i] = cast(xs[i], dtype);
  }
  return xs;
}

std::vector<Variable> lstm_grad(const Variable& c_prev, const Variable& x, Variables gys) {
  const Shape &state = c_prev.shape(), &gates = x.shape();
  const auto defined_or_zeros = [&](const Variable& gy, std::int64_t rows) {
    Shape shape = state;
    shape[0] = rows;
    return gy.defined() ? gy.array() : zeros(shape, x.dtype(), x.device());
  };
  const std::int64_t n = gates[0];
  const Array gc = defined_or_zeros(gys[0], state[0]), gh = defined_or_zeros(gys[1], n);
  const Array gc_prev = empty(state, x.dtype(), x.device());
  const Array gx = empty(gates, x.dtype(), x.device());
  const auto active = [n](const Array& a) { return slice_view(a, 0, 0, n); };
  const auto inactive = [n](const Array& a) { return slice_view(a, 0, n, a.shape(0) - n); };
  recurrent_kernels.on(x.device())
      .lstm_grad(alternating_gates_of(x.array()), false, active(c_prev.array()), active(gc), gh,
                 alternating_gates_of(gx), active(gc_prev));
  copy(inactive(gc), inactive(gc_prev));
  return {Variable(gc_prev), Variable(gx)};
}

// The same cell, written with operations that are recorded.
std::vector<Variable> compose_alternating_lstm(Variables operands) {
  const Variable &c_prev = operands[0], &x = operands[1];
  Shape shape = x.shape(), gate = x.shape();
  gate[1] /= 4;
  shape[1] /= 4;
  shape.insert(2, 4);
  std::vector<Variable> gates = split_axis(reshape(x, shape), {1, 2, 3}, 2);
  for (Variable& g : gates) g = reshape(g, gate);
  const std::vector<Variable> both = split_axis(c_prev, {x.shape(0)}, 0);
  std::vector<Variable> ys = compose_lstm(gates, both[0]);
  ys[0] = concat({ys[0], both[1]}, 0);
  return ys;
}

}  // namespace

std::tuple<Variable, Variable> lstm(const Variable& c_operand, const Variable& x_operand) {
  const std::vector<Variable> operands = promote({c_operand, x_operand}, 2);
  const Variable &c_prev = operands[0], &x = operands[1];
  const Shape &state = c_prev.shape(), &gates = x.shape();
  require(is_float(x.dtype()) && c_prev.dtype() == x.dtype(),
          "lstm: expected floats of one dtype, got ", c_prev.dtype(), " and ", x.dtype());
  bool fits = state.size() >= 2 && gates.size() == state.size() && gates[0] <= state[0] &&
              gates[1] == 4 * state[1];
  for (int i = 2; fits && i < state.size(); ++i) fits = gates[i] == state[i];
  require(fits, "lstm: expected (B, C, …) and (N, 4 C, …), N <= B, got ", state, " and ", gates);

  Shape out = state;
  out[0] = gates[0];
  const Array c = empty(state, x.dtype(), x.device()), h = empty(out, x.dtype(), x.device());
  const auto active = [&](const Array& a) { return slice_view(a, 0, 0, out[0]); };
  const auto inactive = [&](const Array& a) { return slice_view(a, 0, out[0], state[0] - out[0]); };
  recurrent_kernels.on(x.device())
      .lstm(alternating_gates_of(x.array()), {}, active(c_prev.array()), {}, active(c), h);
  copy(inactive(c_prev.array()), inactive(c));

  auto back = [operands](Variables gys, std::span<const int>) {
    if (backprop_enabled()) return recorded_gradients(compose_alternating_lstm, operands, gys);
    return lstm_grad(operands[0], operands[1], gys);
  };
  const Array ys[] = {c, h};
  const std::vector<Variable> both = record_all("LSTM", ys, operands, back);
  return {both[0], both[1]};
}

std::tuple<Variable, Variable, Variable> lstm_layer(const Variable& x, const Variable& h,
                                                    const Variable& c, const Variable& w,
                                                    const Lengths& lengths, bool backwards) {
  const auto ys = recurrent_layer(kLstm, promote({x, h, c, w}, 3), 2, lengths, backwards);
  return {ys[0], ys[1], ys[2]};
}

std::tuple<Variable, Variable> gru_layer(const Variable& x, const Variable& h, const Variable& w,
                                         const Variable& b, const Lengths& lengths,
                                         bool backwards) {
  const auto ys = recurrent_layer(kGru, promote({x, h, w, b}, 2), 1, lengths, backwards);
  return {ys[0], ys[1]};
}

std::tuple<Variable, Variable> rnn_layer(const Variable& x, const Variable& h, const Variable& w,
                                         const Lengths& lengths, bool backwards,
                                         const std::string& activation) {
  require<std::invalid_argument>(activation == "tanh" || activation == "relu",
                                 "rnn_layer: expected tanh or relu, got ", activation);
  const Cell& cell = activation == "tanh" ? kTanh : kReLU;
  const auto ys = recurrent_layer(cell, promote({x, h, w}, 2), 1, lengths, backwards);
  return {ys[0], ys[1]};
}

}  // namespace renga
