#include "nn/optimizers.h"

#include <cmath>
#include <map>

#include "autograd/backward.h"
#include "nn/numpy_random.h"
#include "ops/elementwise/elementwise.h"
#include "optimizers/norms.h"

namespace renga {
namespace {

const Array& changed(const Variable& x) { return x.body()->writable_array(); }

double norm_of(const Array& x) { return std::sqrt(squared_norm(to_device(x, {}))); }

void require_number(const char* what, double value, double low) {
  require<std::invalid_argument>(value >= low, what, ": expected a number >= ", low, ", got ",
                                 value);
}

void require_beta(const char* optimizer, const char* name, double beta) {
  require<std::invalid_argument>(beta >= 0 && beta < 1, optimizer, ": ", name,
                                 ": expected a number in [0, 1), got ", beta);
}

// Replaces the gradient of each parameter by `change(gradient, parameter)`.
template <class Change>
OptimizerHook::Function replacing(const Change& change) {
  return [change](const std::vector<Variable>& parameters, std::int64_t /*t*/) {
    for (const Variable& x : parameters) {
      VariableBody& grad = *x.body()->grad.body();
      grad.set_array(change(grad.array(), x.array()));
    }
  };
}

}  // namespace

OptimizerHook weight_decay(double rate) {
  return [rate](const std::vector<Variable>& parameters, std::int64_t /*t*/) {
    for (const Variable& x : parameters) add_scaled(changed(x.body()->grad), x.array(), rate);
  };
}

OptimizerHook gradient_clipping(double threshold) {
  require_number("GradientClipping: threshold", threshold, 0);
  const auto clip = [threshold](const std::vector<Variable>& parameters, std::int64_t t) {
    double square = 0;
    for (const Variable& x : parameters) {
      square += squared_norm(to_device(x.body()->grad.array(), {}));
    }
    const double norm = std::sqrt(square);
    if (norm <= threshold) return;
    replacing([rate = threshold / norm](const Array& grad, const Array&) {
      return apply(Unary::multiply, grad, rate);
    })(parameters, t);
  };
  return {clip, "GradientClipping"};
}

OptimizerHook gradient_hard_clipping(double lower, double upper) {
  return replacing([=](const Array& grad, const Array& /*x*/) {
    return apply(Unary::clip, grad, lower, upper);
  });
}

OptimizerHook lasso(double rate) {
  return [rate](const std::vector<Variable>& parameters, std::int64_t /*t*/) {
    for (const Variable& x : parameters) {
      add_scaled(changed(x.body()->grad), apply(Unary::sign, x.array()), rate);
    }
  };
}

OptimizerHook gradient_noise(double eta) {
  require_number("GradientNoise: eta", eta, 0);
  const auto add_noise = [eta](const std::vector<Variable>& parameters, std::int64_t t) {
    const double variance = eta / std::pow(1 + static_cast<double>(t), 0.55);
    const Initializer draw = initializers::normal(std::pow(variance, 0.5));
    for (const Variable& x : parameters) {
      const Array noise = empty_like(x.array());
      draw(noise);
      add_scaled(changed(x.body()->grad), noise, 1);
    }
  };
  return {add_noise, "GradientNoise"};
}

OptimizerHook gradient_lars(double threshold, double weight_decay, double eps) {
  const auto scale = [=](const Array& grad, const Array& x) {
    const double x_norm = norm_of(x), g_norm = norm_of(grad);
    const double rate = x_norm > threshold ? x_norm / (eps + g_norm + weight_decay * x_norm) : 1;
    const Array decayed = apply("add", Binary::add, grad, apply(Unary::multiply, x, weight_decay));
    return apply(Unary::multiply, decayed, rate);
  };
  return {replacing(scale), "GradientLARS"};
}

OptimizerBase::OptimizerBase(const nn::Module& model, std::vector<const char*> states,
                             std::size_t stored, double first_state)
    : parameters_(model.parameters()),
      parts_(model.parts()),
      state_names_(std::move(states)),
      stored_(stored) {
  require<std::invalid_argument>(!parameters_.empty(),
                                 "Optimizer: expected a module with parameters, got none");
  if (stored_ < state_names_.size()) require_whole("LAMB");
  for (const auto& [name, x] : parameters_) {
    updates_.push_back(zeros({}, Dtype::int64));
    auto& arrays = states_.emplace_back();
    for (std::size_t k = 0; k < state_names_.size(); ++k) {
      arrays.push_back(full(x.shape(), k == 0 ? first_state : 0, x.dtype(), x.device()));
    }
  }
}

void OptimizerBase::require_whole(const char* what) const {
  if (parts_.empty()) return;
  fail<std::invalid_argument>(what, ": expected whole parameters, got a part of ", parts_[0].first);
}

void OptimizerBase::add_hook(OptimizerHook hook) {
  if (hook.whole_for != nullptr) require_whole(hook.whole_for);
  hooks_.push_back(std::move(hook));
}

std::vector<NamedVariable> OptimizerBase::arrays() const {
  std::vector<NamedVariable> all{{"t", Variable(t_)}, {"epoch", Variable(epoch_)}};
  for (std::size_t i = 0; i < states_.size(); ++i) {
    const std::string path = parameters_[i].first + "/";
    all.emplace_back(path + "t", Variable(updates_[i]));
    for (std::size_t k = 0; k < stored_; ++k) {
      all.emplace_back(path + state_names_[k], Variable(states_[i][k]));
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
  for (const OptimizerHook& hook : hooks_) hook(variables, t());
  ++*t_.as<std::int64_t>();
  for (const Array& t : updates_) ++*t.as<std::int64_t>();
  free_propagated_graphs(variables);
}

void OptimizerBase::apply(RuleIndex rule,
                          const std::function<std::vector<double>(std::int64_t)>& options_at,
                          const std::function<void(const Array&, const Array&)>& finish) {
  std::vector<std::pair<Array, Gradient>> arrays;
  std::vector<UpdateCall> calls;
  std::map<std::int64_t, std::vector<double>> options;  // by the number of updates
  arrays.reserve(parameters_.size());
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const Variable& x = parameters_[i].second;
    for (Array& state : states_[i]) {
      if (state.device() != x.device()) state = to_device(state, x.device());
    }
    const std::int64_t t = *updates_[i].as<std::int64_t>();
    auto found = options.find(t);
    if (found == options.end()) found = options.emplace(t, options_at(t)).first;
    arrays.emplace_back(changed(x), changed(x.body()->grad));
    calls.push_back({arrays[i].first, arrays[i].second, states_[i].data(), found->second.data()});
  }
  update_all(rule, calls, state_names_.size(), options.begin()->second.size());
  if (!finish) return;
  for (std::size_t i = 0; i < calls.size(); ++i) finish(calls[i].x, states_[i].back());
}

namespace hyperparameters {

std::array<double, 6> Msvag::at(std::int64_t t) const {
  const double power = std::pow(beta, static_cast<double>(t));
  const double rho = (1 - beta) * (1 + power) / ((1 + beta) * (1 - power));
  return {lr, beta, 1 - power, rho, eta, weight_decay_rate};
}

std::array<double, 8> AdamMoments::at(const char* optimizer, std::int64_t t) const {
  require_beta(optimizer, "beta1", beta1);
  require_beta(optimizer, "beta2", beta2);
  const auto n = static_cast<double>(t);
  const double correction = std::sqrt(1 - std::pow(beta2, n)) / (1 - std::pow(beta1, n));
  return {alpha * correction, beta1, beta2, eps, eta, weight_decay_rate, lower, upper};
}

std::array<double, 6> Lamb::at(std::int64_t t) const {
  require_beta("LAMB", "beta1", beta1);
  require_beta("LAMB", "beta2", beta2);
  const auto n = static_cast<double>(t);
  return {beta1, beta2, eps, weight_decay_rate, 1 - std::pow(beta1, n), 1 - std::pow(beta2, n)};
}

void Lamb::move(const Array& x, const Array& direction) const {
  const double x_norm = norm_of(x), norm = norm_of(direction);
  const double trust = x_norm * norm > 0 ? x_norm / norm : 1;
  // The product is rounded before the sum, as in Python.
  add_scaled(x, apply(Unary::multiply, direction, alpha * trust), -1);
}

}  // namespace hyperparameters
}  // namespace renga
