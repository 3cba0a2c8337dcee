// Optimizers: they update the parameters of a module by the rules of csrc/optimizers.
//
//   Adam optimizer(net, {.alpha = 1e-3});
//   optimizer.options.alpha *= 0.9;  // schedules change the options
#pragma once

#include <array>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nn/module.h"
#include "optimizers/update_rules.h"

namespace renga {

// Called before an update with all parameters; it changes their gradients.
using OptimizerHook = std::function<void(const std::vector<Variable>& parameters)>;

// Adds rate x to the gradient of each parameter x: the gradient of an L2 penalty.
OptimizerHook weight_decay(double rate);
// Scales all gradients so that the norm of all together is at most the threshold.
OptimizerHook gradient_clipping(double threshold);
// Limits each element of gradients.
OptimizerHook gradient_hard_clipping(double lower, double upper);

// The parameters of a module with the states of a rule; the arguments of a rule but its options.
class OptimizerBase {
 public:
  void add_hook(OptimizerHook hook) { hooks_.push_back(std::move(hook)); }
  // How many updates there were.
  std::int64_t t() const { return t_; }
  // The states, by the names of Python's files, such as hidden/W/m.
  std::vector<NamedVariable> arrays() const;

 protected:
  // Initially, the first state has one value, and the others are zeros.
  OptimizerBase(const nn::Module& model, std::vector<const char*> states, double first_state);
  // Counts an update and calls the hooks.
  void begin_update();
  void apply(RuleIndex rule, std::span<const double> options);

  std::vector<NamedVariable> parameters_;

 private:
  std::vector<const char*> state_names_;
  double first_state_;
  std::vector<std::vector<Array>> states_;  // of each parameter, made at the first update
  std::vector<OptimizerHook> hooks_;
  std::int64_t t_ = 0;
};

// An optimizer whose hyperparameters are `Options`: with a name of a rule, of the list entry, and
// what its options are at update t.
template <class Options>
class Optimizer : public OptimizerBase {
 public:
  explicit Optimizer(const nn::Module& model, const Options& options = {})
      : OptimizerBase(model, state_names(), first_state()), options(options) {}

  // Updates the parameters by their gradients, which count as zeros where there are none.
  void update() {
    begin_update();
    apply(kRule, options.at(t()));
  }

  Options options;

 private:
  static constexpr RuleIndex kRule = rule_index(Options::rule);
  static_assert(kRule < kUpdateRules, "no rule has this name");

  static constexpr double first_state() {
    if constexpr (requires { Options::first_state; }) return Options::first_state;
    return 0;
  }
  static std::vector<const char*> state_names() {
    std::vector<const char*> names;
    list_update_rules([&](const auto& entry) {
      if (std::string_view(entry.name) == Options::rule) {
        names.assign(entry.states.begin(), entry.states.end());
      }
    });
    return names;
  }
};

// Hyperparameters, with the names and defaults of Python's optimizers.
namespace hyperparameters {

struct Sgd {
  static constexpr const char* rule = "sgd";
  double lr = 0.01;
  auto at(std::int64_t) const { return std::array{lr}; }
};

// Of rules with a momentum.
template <auto& kName>
struct Momentum {
  static constexpr const char* rule = kName;
  double lr = 0.01, momentum = 0.9;
  auto at(std::int64_t) const { return std::array{lr, momentum}; }
};
inline constexpr char kMomentumSgd[] = "momentum_sgd", kNesterovAg[] = "nesterov_ag",
                      kCorrectedMomentumSgd[] = "corrected_momentum_sgd";

struct RmsProp {
  static constexpr const char* rule = "rmsprop";
  double lr = 0.01, alpha = 0.99, eps = 1e-8;
  bool eps_inside_sqrt = false;
  auto at(std::int64_t) const { return std::array{lr, alpha, eps, eps_inside_sqrt ? 1.0 : 0.0}; }
};

struct AdaGrad {
  static constexpr const char* rule = "adagrad";
  double lr = 0.001, eps = 1e-8;
  auto at(std::int64_t) const { return std::array{lr, eps}; }
};

struct AdaDelta {
  static constexpr const char* rule = "adadelta";
  double rho = 0.95, eps = 1e-6;
  auto at(std::int64_t) const { return std::array{rho, eps}; }
};

struct RmsPropGraves {
  static constexpr const char* rule = "rmsprop_graves";
  double lr = 1e-4, alpha = 0.95, momentum = 0.9, eps = 1e-4;
  auto at(std::int64_t) const { return std::array{lr, alpha, momentum, eps}; }
};

struct Smorms3 {
  static constexpr const char* rule = "smorms3";
  static constexpr double first_state = 1;  // of mem
  double lr = 0.001, eps = 1e-16;
  auto at(std::int64_t) const { return std::array{lr, eps}; }
};

struct Msvag {
  static constexpr const char* rule = "msvag";
  double lr = 0.1, beta = 0.9, eta = 1, weight_decay_rate = 0;
  std::array<double, 6> at(std::int64_t t) const;
};

// Of Adam and its variants.
std::array<double, 8> adam_options(double alpha, double beta1, double beta2, double eps, double eta,
                                   double weight_decay_rate, std::int64_t t);
template <auto& kName>
struct Adam {
  static constexpr const char* rule = kName;
  double alpha = 0.001, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, eta = 1, weight_decay_rate = 0;
  auto at(std::int64_t t) const {
    return adam_options(alpha, beta1, beta2, eps, eta, weight_decay_rate, t);
  }
};
inline constexpr char kAdam[] = "adam", kAmsGrad[] = "amsgrad";

}  // namespace hyperparameters

using SGD = Optimizer<hyperparameters::Sgd>;
using MomentumSGD = Optimizer<hyperparameters::Momentum<hyperparameters::kMomentumSgd>>;
using NesterovAG = Optimizer<hyperparameters::Momentum<hyperparameters::kNesterovAg>>;
using CorrectedMomentumSGD =
    Optimizer<hyperparameters::Momentum<hyperparameters::kCorrectedMomentumSgd>>;
using RMSprop = Optimizer<hyperparameters::RmsProp>;
using AdaGrad = Optimizer<hyperparameters::AdaGrad>;
using AdaDelta = Optimizer<hyperparameters::AdaDelta>;
using RMSpropGraves = Optimizer<hyperparameters::RmsPropGraves>;
using SMORMS3 = Optimizer<hyperparameters::Smorms3>;
using MSVAG = Optimizer<hyperparameters::Msvag>;
using Adam = Optimizer<hyperparameters::Adam<hyperparameters::kAdam>>;
using AMSGrad = Optimizer<hyperparameters::Adam<hyperparameters::kAmsGrad>>;

}  // namespace renga
