#include "optimizers/update_rules.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace renga {

constinit KernelTable<UpdateKernels> update_kernels{"update rules"};

namespace {

// Where calls of rules go, if they are deferred. It is the thread's, because Python code of the
// user may be between who defers them and their calls: an optimizer, its update rules and hooks.
thread_local std::vector<Update>* deferred = nullptr;

void check(const char* rule, const Array& x, const Array& y) {
  require(is_float(x.dtype()), rule, ": expected a float parameter, got ", x.dtype());
  require(y.shape() == x.shape() && y.dtype() == x.dtype() && y.device() == x.device(), rule,
          ": expected arrays like the parameter, ", x.shape(), " of ", x.dtype(), " on ",
          to_string(x.device()), ", got ", y.shape(), " of ", y.dtype(), " on ",
          to_string(y.device()));
}

void check(const char* rule, const Array& x, const UpdateMask& mask) {
  const Array& values = mask.values;
  require(values.dtype() == Dtype::float32 && values.size() == 2 && values.is_contiguous() &&
              values.device() == x.device(),
          rule, ": expected 2 adjoining numbers of float32 on ", to_string(x.device()),
          " as a mask, got ", values.shape(), " of ", values.dtype(), " on ",
          to_string(values.device()));
}

constexpr auto kNames = [] {
  std::array<const char*, kUpdateRules> names{};
  std::size_t i = 0;
  list_update_rules([&](const auto& rule) { names[i++] = rule.name; });
  return names;
}();

void call_kernel(RuleIndex rule, std::span<const UpdateCall> calls) {
  update_kernels.on(calls[0].x.device()).rules[rule](calls);
}

bool are_of_different_arrays(std::span<const UpdateCall> calls) {
  std::vector<const std::byte*> memory;
  for (const UpdateCall& call : calls) memory.push_back(call.x.data());
  std::ranges::sort(memory);
  return std::ranges::adjacent_find(memory) == memory.end();
}

// Makes the calls that `body` makes of rules part of `updates`.
void defer(const std::function<void()>& body, std::vector<Update>& updates) {
  struct Deferring {
    explicit Deferring(std::vector<Update>* to) : outer(std::exchange(deferred, to)) {}
    ~Deferring() { deferred = outer; }
    std::vector<Update>* outer;
  } const deferring(&updates);
  body();
}

void apply_together(const std::vector<Update>& updates) {
  using Kind = std::tuple<RuleIndex, Dtype, std::uint8_t, std::int16_t>;
  std::map<Kind, std::vector<UpdateCall>> kinds;
  std::set<const std::byte*> parameters;
  const auto call_kernels = [&] {
    for (const auto& [kind, calls] : kinds) call_kernel(std::get<RuleIndex>(kind), calls);
    kinds.clear();
    parameters.clear();
  };
  for (const Update& made : updates) {
    // The second update of a parameter comes after the first.
    if (parameters.contains(made.x.data())) call_kernels();
    parameters.insert(made.x.data());
    const Device device = made.x.device();
    kinds[{made.rule, made.x.dtype(), device.driver, device.index}].push_back(
        {made.x, made.g, made.states.data(), made.options.data()});
  }
  call_kernels();
}

}  // namespace

void Update::apply(const Array& x, const Gradient& g, const Array* states) const {
  call_kernel(rule, {{{x, g, states, options.data()}}});
}

void update(RuleIndex rule, const Array& x, const Gradient& g, std::span<const Array> states,
            std::span<const double> options) {
  update_all(rule, {{{x, g, states.data(), options.data()}}}, states.size(), options.size());
}

void update_all(RuleIndex rule, std::span<const UpdateCall> calls, std::size_t states,
                std::size_t options) {
  const char* const name = kNames[rule];
  for (const UpdateCall& call : calls) {
    check(name, call.x, call.g.array);
    if (call.g.mask) check(name, call.x, *call.g.mask);
    for (std::size_t k = 0; k < states; ++k) check(name, call.x, call.states[k]);
    if (deferred != nullptr) {
      deferred->push_back({rule,
                           call.x,
                           call.g,
                           {call.states, call.states + states},
                           {call.options, call.options + options}});
    }
  }
  if (deferred != nullptr) return;
  for (std::size_t begin = 0, end = 0; begin < calls.size(); begin = end) {
    const Array& first = calls[begin].x;
    while (end < calls.size() && calls[end].x.dtype() == first.dtype() &&
           calls[end].x.device() == first.device()) {
      ++end;
    }
    // The second update of a parameter comes after the first.
    const std::size_t step =
        are_of_different_arrays(calls.subspan(begin, end - begin)) ? end - begin : 1;
    for (; begin < end; begin += step) call_kernel(rule, calls.subspan(begin, step));
  }
}

std::vector<Update> deferred_updates(const std::function<void()>& body) {
  std::vector<Update> updates;
  defer(body, updates);
  return updates;
}

void update_together(const std::function<void()>& body) {
  if (deferred != nullptr) return body();
  std::vector<Update> updates;
  try {
    defer(body, updates);
  } catch (...) {
    apply_together(updates);
    throw;
  }
  apply_together(updates);
}

void add_scaled(const Array& y, const Array& x, double scale) {
  check("add_scaled", y, x);
  const double lr = -scale;
  call_kernel(rule_index("sgd"), {{{y, x, nullptr, &lr}}});
}

}  // namespace renga
