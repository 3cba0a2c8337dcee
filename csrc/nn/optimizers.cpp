#include "nn/optimizers.h"

#include <cmath>
#include <limits>

#include "autograd/backward.h"
#include "lazy/deferred.h"
#include "ops/elementwise/elementwise.h"
#include "optimizers/norms.h"

namespace renga {
namespace {

// The array of a variable, to be changed in place.
Array changed(const Variable& x) {
  VariableBody& body = *x.body();
  if (body.cache) body.cache->clear();
  expose(body.array());
  return body.array();
}

}  // namespace

OptimizerHook weight_decay(double rate) {
  return [rate](const std::vector<Variable>& parameters) {
    for (const Variable& x : parameters) {
      add_scaled(changed(x.body()->grad), x.array(), rate);
    }
  };
}

OptimizerHook gradient_clipping(double threshold) {
  require<std::invalid_argument>(threshold >= 0,
                                 "GradientClipping: threshold: expected a number of at least 0, "
                                 "got ",
                                 threshold);
  return [threshold](const std::vector<Variable>& parameters) {
    double square = 0;
    for (const Variable& x : parameters) {
      square += squared_norm(to_device(x.body()->grad.array(), {}));
    }
    const double norm = std::sqrt(square);
    if (norm <= threshold) return;
    for (const Variable& x : parameters) {
      VariableBody& grad = *x.body()->grad.body();
      grad.set_array(apply(Unary::multiply, grad.array(), threshold / norm));
    }
  };
}

OptimizerHook gradient_hard_clipping(double lower, double upper) {
  return [=](const std::vector<Variable>& parameters) {
    for (const Variable& x : parameters) {
      VariableBody& grad = *x.body()->grad.body();
      grad.set_array(apply(Unary::clip, grad.array(), lower, upper));
    }
  };
}

OptimizerBase::OptimizerBase(const nn::Module& model, std::vector<const char*> states,
                             double first_state)
    : parameters_(model.parameters()), state_names_(std::move(states)), first_state_(first_state) {
  require<std::invalid_argument>(!parameters_.empty(),
                                 "Optimizer: expected a module with parameters, got none");
}

std::vector<NamedVariable> OptimizerBase::arrays() const {
  std::vector<NamedVariable> all;
  for (std::size_t i = 0; i < states_.size(); ++i) {
    for (std::size_t k = 0; k < state_names_.size(); ++k) {
      all.emplace_back(parameters_[i].first + "/" + state_names_[k], Variable(states_[i][k]));
    }
  }
  return all;
}

void OptimizerBase::begin_update() {
  std::vector<Variable> variables;
  for (const auto& [name, x] : parameters_) {
    Variable& grad = x.body()->grad;
    if (!grad.defined()) grad = Variable(zeros(x.shape(), x.dtype(), x.device()));
    variables.push_back(x);
  }
  for (const OptimizerHook& hook : hooks_) hook(variables);
  ++t_;
  free_propagated_graphs(variables);
}

void OptimizerBase::apply(RuleIndex rule, std::span<const double> options) {
  if (states_.empty()) {
    for (const auto& [name, x] : parameters_) {
      auto& states = states_.emplace_back();
      for (std::size_t k = 0; k < state_names_.size(); ++k) {
        states.push_back(full(x.shape(), k == 0 ? first_state_ : 0, x.dtype(), x.device()));
      }
    }
  }
  std::vector<std::pair<Array, Gradient>> arrays;
  std::vector<UpdateCall> calls;
  arrays.reserve(parameters_.size());
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const Variable& x = parameters_[i].second;
    arrays.emplace_back(changed(x), changed(x.body()->grad));
    calls.push_back({arrays[i].first, arrays[i].second, states_[i].data(), options.data()});
  }
  update_all(rule, calls, state_names_.size(), options.size());
}

namespace hyperparameters {

std::array<double, 6> Msvag::at(std::int64_t t) const {
  const double power = std::pow(beta, static_cast<double>(t));
  const double rho = (1 - beta) * (1 + power) / ((1 + beta) * (1 - power));
  return {lr, beta, 1 - power, rho, eta, weight_decay_rate};
}

std::array<double, 8> adam_options(double alpha, double beta1, double beta2, double eps, double eta,
                                   double weight_decay_rate, std::int64_t t) {
  const auto n = static_cast<double>(t);
  const double correction = std::sqrt(1 - std::pow(beta2, n)) / (1 - std::pow(beta1, n));
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  return {alpha * correction, beta1, beta2, eps, eta, weight_decay_rate, 0, kInfinity};
}

}  // namespace hyperparameters
}  // namespace renga
