#include "ops/recurrent/recurrent.h"

#include "autograd/node.h"
#include "ops/elementwise/activation.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/elementwise/elementwise.h"
#include "ops/recurrent/kernels.h"
#include "ops/recurrent/recurrent_layer.h"
#include "ops/shape/manipulation.h"
#include "ops/shape/one_device.h"
#include "tensor/views.h"

namespace renga {

constinit KernelTable<RecurrentKernels> recurrent_kernels{"recurrent"};

namespace {

using Arrays = std::span<const Array>;
using Variables = std::span<const Variable>;

// Returns the shape of four gates which alternate along axis 1, with axis 2 for the gates.
Shape alternating_shape(Shape shape) {
  shape[1] /= 4;
  shape.insert(2, 4);
  return shape;
}

// Returns such gates with their axis in front.
Array alternating_gates_of(const Array& x) {
  const Shape shape = alternating_shape(x.shape());
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
      .lstm_rows(input, hidden, before[1], saved, after[1], after[0]);
}

void lstm_step_backward(const Array& saved, Arrays before, Arrays gstates, const Array& ginput,
                        const Array&) {
  recurrent_kernels.on(saved.device())
      .lstm_rows_grad(saved, before[1], gstates[1], gstates[0], ginput, gstates[1]);
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

// Casts activations of bfloat16 and float32 to the wider dtype, and weights of another float dtype
// to that of the activations.
std::vector<Variable> promote(std::vector<Variable> xs, std::size_t n_activations,
                              const char* caller = __builtin_FUNCTION()) {
  require_one_device(caller, xs);
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

// An LstmStep is a step of which the first n samples are active.
struct LstmStep {
  std::int64_t n, others;

  Array active(const Array& a) const { return slice_view(a, 0, 0, n); }
  Array inactive(const Array& a) const { return slice_view(a, 0, n, others); }
};

// The gradients of the cell and the gates. `activated` are the gates after their activation.
std::vector<Variable> lstm_grad(const LstmStep& step, const Array& c_prev, const Array& activated,
                                const Array& gc, const Array& gh) {
  const Array gc_prev = empty_like(gc), gx = empty_like(activated);
  recurrent_kernels.on(gx.device())
      .lstm_grad(alternating_gates_of(activated), step.active(c_prev), step.active(gc), gh,
                 alternating_gates_of(gx), step.active(gc_prev));
  copy(step.inactive(gc), step.inactive(gc_prev));
  return {Variable(gc_prev), Variable(gx)};
}

// Computes the gradients of lstm_grad with operations that are recorded, and with the gradient of
// the activated gates, which these have in second derivatives.
std::vector<Variable> compose_lstm_grad(const LstmStep& step, const Variable& c_prev,
                                        const Variable& activated, const Variable& gc,
                                        const Variable& gh, const Variable& gactivated) {
  const auto split = [&](const Variable& gates) {
    const Shape shape = alternating_shape(gates.shape());
    std::vector<Variable> parts = split_axis(reshape(gates, shape), {1, 2, 3}, 2);
    for (Variable& part : parts) part = reshape(part, gh.shape());
    return parts;
  };
  const std::vector<Variable> gates = split(activated), ggates = split(gactivated);
  const Variable &a = gates[0], &i = gates[1], &f = gates[2], &o = gates[3];
  const Variable c = split_axis(c_prev, {step.n}, 0)[0];
  const std::vector<Variable> gcs = split_axis(gc, {step.n}, 0);
  const Variable y = tanh(add(multiply(a, i), multiply(f, c)));
  const Variable g = add(gcs[0], tanh_grad(y, multiply(gh, o)));
  const Variable gx = stack({tanh_grad(a, add(multiply(g, i), ggates[0])),
                             sigmoid_grad(i, add(multiply(g, a), ggates[1])),
                             sigmoid_grad(f, add(multiply(g, c), ggates[2])),
                             sigmoid_grad(o, add(multiply(gh, y), ggates[3]))},
                            2);
  return {concat({multiply(g, f), gcs[1]}, 0), reshape(gx, activated.shape())};
}

}  // namespace

std::tuple<Variable, Variable> lstm(const Variable& c_operand, const Variable& x_operand,
                                    const std::optional<Variable>& hidden_operand) {
  // Broadcasts in a pass of its own.
  if (hidden_operand && hidden_operand->shape() != x_operand.shape()) {
    return lstm(c_operand, add(x_operand, *hidden_operand));
  }
  std::vector<Variable> operands{c_operand, x_operand};
  if (hidden_operand) operands.push_back(*hidden_operand);
  operands = promote(std::move(operands), operands.size());
  const Variable &c_prev = operands[0], &x = operands[1];
  const Shape &state = c_prev.shape(), &gates = x.shape();
  const Array hidden = hidden_operand ? operands[2].array() : Array();
  require(is_float(x.dtype()) && c_prev.dtype() == x.dtype(),
          "lstm: expected floats of one dtype, got ", c_prev.dtype(), " and ", x.dtype());
  bool fits = state.size() >= 2 && gates.size() == state.size() && gates[0] <= state[0] &&
              gates[1] == 4 * state[1];
  for (int i = 2; fits && i < state.size(); ++i) fits = gates[i] == state[i];
  require(fits, "lstm: expected (B, C, …) and (N, 4 C, …), N <= B, got ", state, " and ", gates);
  require(!hidden.defined() || hidden.dtype() == x.dtype(), "lstm: expected hidden of dtype ",
          x.dtype(), " as x, got ", hidden.dtype());

  const LstmStep step{gates[0], state[0] - gates[0]};
  Shape out = state;
  out[0] = step.n;
  const bool keeps = backprop_enabled() && any_requires_grad(operands);
  const Array c = empty(state, x.dtype(), x.device()), h = empty(out, x.dtype(), x.device());
  const Array activated = keeps ? empty(gates, x.dtype(), x.device()) : Array();
  const auto alternating = [](const Array& a) { return a.defined() ? alternating_gates_of(a) : a; };
  recurrent_kernels.on(x.device())
      .lstm(alternating(x.array()), alternating(hidden), step.active(c_prev.array()),
            alternating(activated), step.active(c), h);
  copy(step.inactive(c_prev.array()), step.inactive(c));
  if (!keeps) return {Variable(c), Variable(h)};

  auto back = [step, c_prev, out, saved = Saved(activated), adds = hidden.defined()](
                  Variables gys, std::span<const int>, Node& node) {
    const Variable activated = saved.of(node, 2);
    const auto defined_or_zeros = [&](const Variable& gy, const Shape& shape) {
      return gy.defined() ? gy : Variable(zeros(shape, activated.dtype(), activated.device()));
    };
    const Variable gc = defined_or_zeros(gys[0], c_prev.shape());
    const Variable gh = defined_or_zeros(gys[1], out);
    std::vector<Variable> gxs;
    if (backprop_enabled() || gys[2].defined()) {
      const Variable gactivated = defined_or_zeros(gys[2], activated.shape());
      gxs = compose_lstm_grad(step, c_prev, activated, gc, gh, gactivated);
    } else {
      gxs = lstm_grad(step, c_prev.array(), activated.array(), gc.array(), gh.array());
    }
    if (adds) gxs.push_back(gxs[1]);
    return gxs;
  };
  // The activated gates are an output that second derivatives have a gradient of.
  const Array ys[] = {c, h, activated};
  const std::vector<Variable> all = record_all("LSTM", ys, operands, back);
  return {all[0], all[1]};
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
