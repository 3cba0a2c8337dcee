// Update rules: each updates a parameter and its optimizer state in one pass over memory.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "devices/kernel_table.h"
#include "optimizers/rules.h"
#include "tensor/array.h"

namespace renga {

// A rule, as its position in the list.
using RuleIndex = std::size_t;

// The rule of that name, or the number of rules if there is none.
constexpr RuleIndex rule_index(std::string_view name) {
  RuleIndex index = 0;
  bool found = false;
  list_update_rules([&](const auto& rule) {
    found = found || name == rule.name;
    if (!found) ++index;
  });
  return index;
}
inline constexpr RuleIndex kUpdateRules = rule_index("");

// An update that a device decides on: unless the first of two float32 numbers on the parameter's
// device is 0, it changes nothing. The second counts the updates that changed nothing, of the `t`
// until the end of this one: rules whose step depends on t leave them out.
struct UpdateMask {
  Array values;
  double t;
};

// A gradient that an update changes first: it multiplies it by `scale`, and adds `decay` times the
// parameter.
struct Gradient {
  Gradient() = default;
  Gradient(Array array, double scale = 1, double decay = 0)
      : array(std::move(array)), scale(scale), decay(decay) {}

  Array array;
  double scale = 1;
  double decay = 0;
  std::optional<UpdateMask> mask;
};

// A rule updates one parameter with these arguments. States and options are those of its list
// entry. All arrays have one shape, float dtype and device. All are updated, the gradient only by
// its scale and decay.
struct UpdateCall {
  const Array& x;
  const Gradient& g;
  const Array* states;
  const double* options;
};

struct UpdateKernels {
  // Each rule has a kernel for calls of one dtype and device that update different parameters.
  std::array<void (*)(std::span<const UpdateCall> calls), kUpdateRules> rules;
};
extern KernelTable<UpdateKernels> update_kernels;

// A deferred call of a rule.
struct Update {
  RuleIndex rule;
  Array x;
  Gradient g;
  std::vector<Array> states;
  std::vector<double> options;

  // Updates arrays that have the same elements of x, g and all states: all of them, or a part.
  void apply(const Array& x, const Gradient& g, const Array* states) const;
};

// Calls a rule, or defers its call.
void update(RuleIndex rule, const Array& x, const Gradient& g, std::span<const Array> states,
            std::span<const double> options);

// Calls a rule for several parameters, or defers its calls; adjoining ones of one dtype and device
// are one call of its kernel.
void update_all(RuleIndex rule, std::span<const UpdateCall> calls, std::size_t states,
                std::size_t options);

// Runs `body` and returns its calls of update() on this thread, deferred.
std::vector<Update> deferred_updates(const std::function<void()>& body);

// Runs `body`. Its calls of update() on this thread take effect at the end, those of one rule by
// one call of its kernel, so `body` reads nothing that they write. If it throws, those that it has
// made take effect.
void update_together(const std::function<void()>& body);

// y += scale x, never deferred
void add_scaled(const Array& y, const Array& x, double scale);

}  // namespace renga
