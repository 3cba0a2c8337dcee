// The kernels of the update rules have this in common on all devices.
#pragma once

#include <array>
#include <cstddef>
#include <utility>

#include "optimizers/update_rules.h"

namespace renga {

// The kernels of a device from its template update<Functor, kStates, kOptions>(calls).
template <class Kernels>
UpdateKernels rule_kernels() {
  UpdateKernels kernels{};
  RuleIndex i = 0;
  list_update_rules(
      [&]<template <class> class Functor, std::size_t kStates, std::size_t kOptions,
          std::size_t kSources>(const UpdateRule<Functor, kStates, kOptions, kSources>&) {
        kernels.rules[i++] = &Kernels::template update<Functor, kStates, kOptions>;
      });
  return kernels;
}

template <class Rule, std::size_t kOptions>
Rule make_rule(const double* options) {
  return [&]<std::size_t... K>(std::index_sequence<K...>) { return Rule(options[K]...); }
  (std::make_index_sequence<kOptions>());
}

// The arrays of a call: parameter, gradient, states.
template <std::size_t N>
std::array<const Array*, N> operands_of(const UpdateCall& call) {
  std::array<const Array*, N> operands{&call.x, &call.g.array};
  for (std::size_t k = 2; k < N; ++k) operands[k] = call.states + (k - 2);
  return operands;
}

// An UpdateMask as kernels read it; without values it admits every update.
struct Mask {
  explicit Mask(const std::optional<UpdateMask>& mask)
      : values(mask ? mask->values.as<float>() : nullptr),
        t(mask ? static_cast<float>(mask->t) : 0) {}

  // Whether an update changes anything; adapts its rule to those before it that did not.
  template <class C, template <class> class Functor>
  RENGA_HOST_DEVICE bool admits(Functor<C>& rule) const {
    if (values == nullptr) return true;
    if (values[0] != 0) return false;
    if constexpr (requires { rule.leave_out(C(), C()); }) {
      if (values[1] > 0) rule.leave_out(C(values[1]), C(t));
    }
    return true;
  }

  const float* values;
  float t;
};

}  // namespace renga
