#include "ops/recurrent/recurrent_layer.h"

#include <algorithm>

#include "autograd/backward.h"
#include "ops/elementwise/elementwise.h"
#include "ops/matmul/matmul.h"
#include "ops/reduction/reduction.h"
#include "ops/shape/manipulation.h"
#include "ops/shape/one_device.h"
#include "tensor/views.h"

namespace renga {
namespace {

Array rows_of(const Array& x, std::int64_t start, std::int64_t n) {
  return slice_view(x, 0, start, n);
}

std::vector<Array> rows_of(std::span<const Array> xs, std::int64_t start, std::int64_t n) {
  std::vector<Array> parts;
  for (const Array& x : xs) parts.push_back(rows_of(x, start, n));
  return parts;
}

// A step's rows among those of all steps.
struct Rows {
  std::int64_t start, count;
};

struct Layer {
  const Cell& cell;
  int n_states;
  std::vector<Rows> steps;         // in the order of computation
  std::vector<std::int64_t> cuts;  // between the steps, in the order of time
  bool backwards;

  std::int64_t total() const {
    std::int64_t n = 0;
    for (const Rows& r : steps) n += r.count;
    return n;
  }
};

Layer make_layer(const Cell& cell, int n_states, const std::vector<std::int64_t>& lengths,
                 bool backwards) {
  Layer layer{cell, n_states, {}, {}, backwards};
  std::int64_t start = 0;
  for (std::int64_t n : lengths) {
    if (!layer.steps.empty()) layer.cuts.push_back(start);
    layer.steps.push_back({start, n});
    start += n;
  }
  if (backwards) std::reverse(layer.steps.begin(), layer.steps.end());
  return layer;
}

// The operands by name.
struct Operands {
  std::span<const Variable> all;
  int n_states;

  const Variable& input() const { return all[0]; }
  std::span<const Variable> states() const { return all.subspan(1, n_states); }
  const Variable& w() const { return all[1 + n_states]; }
  std::optional<Variable> b() const {
    const std::size_t at = 2 + static_cast<std::size_t>(n_states);
    return at < all.size() ? std::optional(all[at]) : std::nullopt;
  }
};

void check(const Layer& layer, const Operands& x, const std::vector<std::int64_t>& lengths) {
  const char* name = layer.cell.op;
  require_one_device(name, x.all);
  const Shape& state = x.states()[0].shape();
  require(state.size() == 2, name, ": expected states of shape (B, N), got ", state);
  const bool sorted =
      !lengths.empty() && lengths.back() >= 0 && std::is_sorted(lengths.rbegin(), lengths.rend());
  require<std::invalid_argument>(sorted, name,
                                 ": expected at least one step, and sequences sorted by length, "
                                 "longest first");
  const std::int64_t most = lengths[0], n = state[1];
  require(x.input().shape() == Shape{layer.total(), layer.cell.gates * n}, name,
          ": expected x of shape ", Shape{layer.total(), layer.cell.gates * n}, ", got ",
          x.input().shape());
  require(x.w().shape() == Shape{layer.cell.gates * n, n}, name, ": expected W of shape ",
          Shape{layer.cell.gates * n, n}, ", got ", x.w().shape());
  for (const Variable& s : x.states()) {
    require(s.shape() == state && state[0] >= most, name, ": expected states of shape (B, ", n,
            ") with B >= ", most, ", got ", s.shape());
    require(is_float(s.dtype()) && s.dtype() == x.input().dtype(), name,
            ": expected floats of one dtype, got ", x.input().dtype(), " and ", s.dtype());
  }
}

// A Trace is what the backward pass needs, and the outputs. Without a backward pass it holds the
// current step only.
struct Trace {
  Array saved;
  std::vector<Array> before;  // the states
  bool all_steps;
  Array y;

  std::int64_t first_row(const Rows& step) const { return all_steps ? step.start : 0; }
};

Trace make_trace(const Layer& layer, const Array& state, bool all_steps) {
  const std::int64_t n = state.shape(1), total = layer.total();
  const std::int64_t rows = all_steps ? total : state.shape(0);
  const auto rows_of_numbers = [&](std::int64_t count, std::int64_t columns) {
    return empty({count, columns}, state.dtype(), state.device());
  };
  Trace trace{rows_of_numbers(rows, layer.cell.saved * n), {}, all_steps, {}};
  const std::int64_t first = layer.steps.front().count;
  if (all_steps && first == layer.steps.back().count) {
    // Sequences of one length: a step's outputs are where the next one reads its first states.
    const Array all = rows_of_numbers(first + total, n);
    trace.before.push_back(rows_of(all, layer.backwards ? first : 0, total));
    trace.y = rows_of(all, layer.backwards ? 0 : first, total);
  } else {
    trace.before.push_back(rows_of_numbers(rows, n));
    trace.y = rows_of_numbers(total, n);
  }
  for (int k = 1; k < layer.n_states; ++k) trace.before.push_back(rows_of_numbers(rows, n));
  return trace;
}

Array transposed(const Array& x) { return transpose_view(x, {1, 0}); }

// Row-major, as results of products are.
Array fresh_copy(const Array& x) {
  const Array y = empty(x.shape(), x.dtype(), x.device());
  copy(x, y);
  return y;
}

// On other devices, products round weights at each step, which is done once here. On the host, a
// few rows are multiplied fastest by small weights whose transpose is row-major: many steps make up
// for the copy.
Variable weights_of_steps(const Layer& layer, const Variable& w) {
  if (!w.device().is_host() && bfloat16_activations()) {
    return Variable(cast(w.array(), Dtype::bfloat16));
  }
  constexpr std::int64_t kFewRows = 4, kSmall = 1 << 15;
  constexpr std::size_t kManySteps = 16;
  const bool pays = w.device().is_host() && w.size() < kSmall && layer.steps.size() >= kManySteps &&
                    std::max(layer.steps.front().count, layer.steps.back().count) <= kFewRows;
  return pays ? Variable(transposed(fresh_copy(transposed(w.array())))) : w;
}

// Computes the outputs and updates the states in place. Sequences that have ended, or not begun,
// keep their states. `compute_dtype` becomes the dtype of the matrix products.
void run(const Layer& layer, const Operands& x, const Trace& trace, std::span<const Array> states,
         Dtype* compute_dtype) {
  const SettingScope off(&Settings::backprop, false);
  const Dtype dtype = states[0].dtype();
  const Array input = contiguous(x.input().array());
  const Variable w = weights_of_steps(layer, x.w());
  std::vector<Array> before;
  for (auto step = layer.steps.begin(); step != layer.steps.end(); ++step) {
    if (before.empty()) {
      before = rows_of(trace.before, trace.first_row(*step), step->count);
      for (int k = 0; k < layer.n_states; ++k) copy(rows_of(states[k], 0, step->count), before[k]);
    }
    // A step of as many rows reads the states where this one writes them.
    const auto next = step + 1;
    const bool goes_on = trace.all_steps && next != layer.steps.end() && next->count == step->count;
    std::vector<Array> after =
        goes_on ? rows_of(trace.before, next->start, next->count) : rows_of(states, 0, step->count);
    const Array hidden = linear(Variable(before[0]), w, x.b()).array();
    *compute_dtype = hidden.dtype();
    layer.cell.step(rows_of(input, step->start, step->count), cast(hidden, dtype), before,
                    rows_of(trace.saved, trace.first_row(*step), step->count), after);
    const Array y = rows_of(trace.y, step->start, step->count);
    if (y.data() != after[0].data()) copy(after[0], y);
    before = goes_on ? std::move(after) : std::vector<Array>();
  }
}

Array product(const Array& a, const Array& b, Dtype dtype) {
  const Array c = empty({a.shape(0), b.shape(1)}, dtype, a.device());
  matmul_kernels.on(c.device()).matmul(a, b, c, {}, nullptr);
  return c;
}

// The gradients of input, the states, w and b.
std::vector<Variable> run_backward(const Layer& layer, const Operands& x, const Trace& trace,
                                   std::span<const Variable> gys, Dtype compute_dtype) {
  const Array input = x.input().array();
  std::vector<Array> gstates;
  for (int k = 0; k < layer.n_states; ++k) {
    const Variable& g = gys[static_cast<std::size_t>(k) + 1];
    const Array like = x.states()[k].array();
    gstates.push_back(g.defined() ? fresh_copy(g.array())
                                  : zeros(like.shape(), like.dtype(), like.device()));
  }
  const Array ginput = empty(input.shape(), input.dtype(), input.device());
  const Array ghidden = layer.cell.separate_hidden ? empty_like(ginput) : ginput;
  const Array& given_w = x.w().array();
  const Array w = given_w.device().is_host() ? given_w : cast(given_w, compute_dtype);
  for (auto step = layer.steps.rbegin(); step != layer.steps.rend(); ++step) {
    const std::vector<Array> active = rows_of(gstates, 0, step->count);
    const Array ghidden_now = rows_of(ghidden, step->start, step->count);
    if (gys[0].defined()) {
      const Array gy = rows_of(gys[0].array(), step->start, step->count);
      elementwise_kernels.on(gy.device()).binary(Binary::add, 0, active[0], gy, active[0]);
    }
    layer.cell.step_backward(rows_of(trace.saved, step->start, step->count),
                             rows_of(trace.before, step->start, step->count), active,
                             rows_of(ginput, step->start, step->count), ghidden_now);
    matmul_kernels.on(input.device())
        .matmul(cast(ghidden_now, compute_dtype), w, active[0], {{}, layer.cell.separate_hidden},
                nullptr);
  }
  std::vector<Variable> gxs{Variable(ginput)};
  for (const Array& g : gstates) gxs.emplace_back(g);
  gxs.emplace_back(product(transposed(cast(ghidden, compute_dtype)),
                           cast(trace.before[0], compute_dtype), x.w().dtype()));
  if (x.b()) gxs.push_back(sum(Variable(ghidden), Axes{0}));
  return gxs;
}

// Computes the same layer with operations that are recorded.
std::vector<Variable> compose(const Layer& layer, const Operands& x) {
  std::vector<Variable> parts = split_axis(x.input(), layer.cuts, 0);
  if (layer.backwards) std::reverse(parts.begin(), parts.end());
  std::vector<Variable> states(x.states().begin(), x.states().end()), ys;
  for (std::size_t t = 0; t < layer.steps.size(); ++t) {
    std::vector<Variable> active, inactive;
    for (const Variable& state : states) {
      const std::vector<Variable> both = split_axis(state, {layer.steps[t].count}, 0);
      active.push_back(both[0]);
      inactive.push_back(both[1]);
    }
    const std::vector<Variable> next =
        layer.cell.compose(parts[t], linear(active[0], x.w(), x.b()), active);
    ys.push_back(next[0]);
    for (std::size_t k = 0; k < states.size(); ++k) states[k] = concat({next[k], inactive[k]}, 0);
  }
  if (layer.backwards) std::reverse(ys.begin(), ys.end());
  states.insert(states.begin(), concat(ys, 0));
  return states;
}

}  // namespace

std::vector<Variable> recurrent_layer(const Cell& cell, const std::vector<Variable>& operands,
                                      int n_states, const std::vector<std::int64_t>& lengths,
                                      bool backwards) {
  const Layer layer = make_layer(cell, n_states, lengths, backwards);
  const Operands x{operands, n_states};
  check(layer, x, lengths);
  const bool all_steps = backprop_enabled() && any_requires_grad(operands);
  std::vector<Array> results;
  for (const Variable& s : x.states()) results.push_back(fresh_copy(s.array()));
  const Trace trace = make_trace(layer, results[0], all_steps);
  Dtype compute_dtype = results[0].dtype();
  run(layer, x, trace, results, &compute_dtype);
  results.insert(results.begin(), trace.y);
  auto back = [=](std::span<const Variable> gys, std::span<const int>, Node&) {
    const Operands xs{operands, n_states};
    if (!backprop_enabled()) return run_backward(layer, xs, trace, gys, compute_dtype);
    const Compose recompute = [&](std::span<const Variable> all) {
      return compose(layer, {all, n_states});
    };
    return recorded_gradients(recompute, operands, gys);
  };
  return record_all(cell.name, results, operands, back);
}

}  // namespace renga
