#include "ops/recurrent/recurrent_layer.h"

#include <algorithm>

#include "autograd/backward.h"
#include "ops/elementwise/elementwise.h"
#include "ops/matmul/matmul.h"
#include "ops/reduction/reduction.h"
#include "ops/shape/manipulation.h"
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

// One step: its rows among those of all steps.
struct Rows {
  std::int64_t start, count;
};

struct Layer {
  const Cell& cell;
  int n_states;
  std::vector<Rows> steps;         // in the order in which they are taken
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

  const Variable& seen() const { return all[0]; }
  std::span<const Variable> states() const { return all.subspan(1, n_states); }
  const Variable& w() const { return all[1 + n_states]; }
  std::optional<Variable> b() const {
    const std::size_t at = 2 + static_cast<std::size_t>(n_states);
    return at < all.size() ? std::optional(all[at]) : std::nullopt;
  }
};

void check(const Layer& layer, const Operands& x, const std::vector<std::int64_t>& lengths) {
  const char* name = layer.cell.op;
  const Shape& state = x.states()[0].shape();
  require(state.size() == 2, name, ": expected states of shape (B, N), got ", state);
  const bool sorted =
      !lengths.empty() && lengths.back() >= 0 && std::is_sorted(lengths.rbegin(), lengths.rend());
  require<std::invalid_argument>(sorted, name,
                                 ": expected at least one step, and sequences sorted by length, "
                                 "longest first");
  const std::int64_t most = lengths[0], n = state[1];
  require(x.seen().shape() == Shape{layer.total(), layer.cell.gates * n}, name,
          ": expected x of shape ", Shape{layer.total(), layer.cell.gates * n}, ", got ",
          x.seen().shape());
  require(x.w().shape() == Shape{layer.cell.gates * n, n}, name, ": expected W of shape ",
          Shape{layer.cell.gates * n, n}, ", got ", x.w().shape());
  for (const Variable& s : x.states()) {
    require(s.shape() == state && state[0] >= most, name, ": expected states of shape (B, ", n,
            ") with B >= ", most, ", got ", s.shape());
    require(is_float(s.dtype()) && s.dtype() == x.seen().dtype(), name,
            ": expected floats of one dtype, got ", x.seen().dtype(), " and ", s.dtype());
  }
}

// What the backward pass needs: of all steps where a graph is recorded, else of the current step
// only.
struct Trace {
  Array kept;
  std::vector<Array> before;
  bool whole;

  std::int64_t place(const Rows& step) const { return whole ? step.start : 0; }
};

Trace make_trace(const Layer& layer, const Array& state, bool whole) {
  const std::int64_t n = state.shape(1), rows = whole ? layer.total() : state.shape(0);
  Trace trace{empty({rows, layer.cell.kept * n}, state.dtype(), state.device()), {}, whole};
  for (int k = 0; k < layer.n_states; ++k) {
    trace.before.push_back(empty({rows, n}, state.dtype(), state.device()));
  }
  return trace;
}

// The outputs and, in place, the states after each step. Sequences that are over, or have not
// begun, keep theirs.
Array run(const Layer& layer, const Operands& x, const Trace& trace, std::span<const Array> states,
          Dtype* multiplied) {
  const BackpropMode off(false);
  const Dtype dtype = states[0].dtype();
  const Array y = empty({layer.total(), states[0].shape(1)}, dtype, states[0].device());
  for (const Rows& step : layer.steps) {
    const std::vector<Array> going = rows_of(states, 0, step.count);
    const std::vector<Array> before = rows_of(trace.before, trace.place(step), step.count);
    for (int k = 0; k < layer.n_states; ++k) copy(going[k], before[k]);
    const Array hidden = linear(Variable(before[0]), x.w(), x.b()).array();
    *multiplied = hidden.dtype();
    layer.cell.step(rows_of(x.seen().array(), step.start, step.count), cast(hidden, dtype), before,
                    rows_of(trace.kept, trace.place(step), step.count), going);
    copy(going[0], rows_of(y, step.start, step.count));
  }
  return y;
}

Array transposed(const Array& x) { return transpose_view(x, {1, 0}); }

// Row-major, as products are written.
Array fresh_copy(const Array& x) {
  const Array y = empty(x.shape(), x.dtype(), x.device());
  copy(x, y);
  return y;
}

Array product(const Array& a, const Array& b, Dtype dtype) {
  const Array c = empty({a.shape(0), b.shape(1)}, dtype, a.device());
  matmul_kernels.on(c.device()).matmul(a, b, c, false);
  return c;
}

// The gradients of seen, the states, w and b. `multiplied` is the dtype that products took and
// made.
std::vector<Variable> run_back(const Layer& layer, const Operands& x, const Trace& trace,
                               std::span<const Variable> gys, Dtype multiplied) {
  const Array seen = x.seen().array();
  std::vector<Array> gstates;
  for (int k = 0; k < layer.n_states; ++k) {
    const Variable& g = gys[static_cast<std::size_t>(k) + 1];
    const Array like = x.states()[k].array();
    gstates.push_back(g.defined() ? fresh_copy(g.array())
                                  : zeros(like.shape(), like.dtype(), like.device()));
  }
  const Array gseen = empty(seen.shape(), seen.dtype(), seen.device());
  const Array ghidden = layer.cell.apart ? empty_like(gseen) : gseen;
  for (auto step = layer.steps.rbegin(); step != layer.steps.rend(); ++step) {
    const std::vector<Array> going = rows_of(gstates, 0, step->count);
    const Array ghidden_now = rows_of(ghidden, step->start, step->count);
    if (gys[0].defined()) {
      const Array gy = rows_of(gys[0].array(), step->start, step->count);
      elementwise_kernels.on(gy.device()).binary(Binary::add, 0, going[0], gy, going[0]);
    }
    layer.cell.step_back(rows_of(trace.kept, step->start, step->count),
                         rows_of(trace.before, step->start, step->count), going,
                         rows_of(gseen, step->start, step->count), ghidden_now);
    matmul_kernels.on(seen.device())
        .matmul(cast(ghidden_now, multiplied), x.w().array(), going[0], layer.cell.apart);
  }
  std::vector<Variable> gxs{Variable(gseen)};
  for (const Array& g : gstates) gxs.emplace_back(g);
  gxs.emplace_back(product(transposed(cast(ghidden, multiplied)), cast(trace.before[0], multiplied),
                           x.w().dtype()));
  if (x.b()) gxs.push_back(sum(Variable(ghidden), Axes{0}));
  return gxs;
}

// The same layer, of operations that record themselves.
std::vector<Variable> compose(const Layer& layer, const Operands& x) {
  std::vector<Variable> parts = split_axis(x.seen(), layer.cuts, 0);
  if (layer.backwards) std::reverse(parts.begin(), parts.end());
  std::vector<Variable> states(x.states().begin(), x.states().end()), ys;
  for (std::size_t t = 0; t < layer.steps.size(); ++t) {
    std::vector<Variable> going, waiting;
    for (const Variable& state : states) {
      const std::vector<Variable> both = split_axis(state, {layer.steps[t].count}, 0);
      going.push_back(both[0]);
      waiting.push_back(both[1]);
    }
    const std::vector<Variable> next =
        layer.cell.compose(parts[t], linear(going[0], x.w(), x.b()), going);
    ys.push_back(next[0]);
    for (std::size_t k = 0; k < states.size(); ++k) states[k] = concat({next[k], waiting[k]}, 0);
  }
  if (layer.backwards) std::reverse(ys.begin(), ys.end());
  states.insert(states.begin(), concat(ys, 0));
  return states;
}

}  // namespace

std::vector<Variable> recorded_gradients(const Compose& compose, std::span<const Variable> given,
                                         std::span<const Variable> gys) {
  // Vertices of their own, past which the walk does not go: one operand may come from another.
  std::vector<Variable> xs;
  for (const Variable& x : given) {
    xs.push_back(record("Identity", x.array(), {{x, [](const Variable& gy) { return gy; }}}));
  }
  const std::vector<Variable> all = compose(xs);
  std::vector<Variable> ys, starts;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!gys[i].defined()) continue;
    ys.push_back(all[i]);
    starts.push_back(gys[i]);
  }
  GradOptions options;
  options.create_graph = true;
  return grad(ys, xs, starts, {}, options);
}

std::vector<Variable> recurrent_layer(const Cell& cell, const std::vector<Variable>& operands,
                                      int n_states, const std::vector<std::int64_t>& lengths,
                                      bool backwards) {
  const Layer layer = make_layer(cell, n_states, lengths, backwards);
  const Operands x{operands, n_states};
  check(layer, x, lengths);
  const bool whole = backprop_enabled() && any_requires_grad(operands);
  std::vector<Array> results;
  for (const Variable& s : x.states()) results.push_back(fresh_copy(s.array()));
  const Trace trace = make_trace(layer, results[0], whole);
  Dtype multiplied = results[0].dtype();
  results.insert(results.begin(), run(layer, x, trace, results, &multiplied));
  auto back = [=](std::span<const Variable> gys, std::span<const int>) {
    const Operands xs{operands, n_states};
    if (!backprop_enabled()) return run_back(layer, xs, trace, gys, multiplied);
    const Compose again = [&](std::span<const Variable> all) {
      return compose(layer, {all, n_states});
    };
    return recorded_gradients(again, operands, gys);
  };
  return record_all(cell.name, results, operands, back);
}

}  // namespace renga
