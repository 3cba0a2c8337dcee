// Optimizers: they update the parameters of a module by the rules of csrc/optimizers.
//
//   Adam optimizer(net, {.alpha = 1e-3});
//   optimizer.options.alpha *= 0.9;  // schedules change the options
#pragma once

#include <array>
#include <concepts>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nn/module.h"
#include "optimizers/update_rules.h"

namespace renga {

// Called before an update with all parameters, whose gradients it changes, and the number of
// updates before.
class OptimizerHook {
 public:
  using Function = std::function<void(const std::vector<Variable>& parameters, std::int64_t t)>;

  // `whole_for` names a hook that reads whole parameters, and not each element alone: models of
  // which ranks have parts refuse it.
  template <class F>
  requires(!std::same_as<F, OptimizerHook> && std::convertible_to<F, Function>)
      // NOLINTNEXTLINE(google-explicit-constructor): a lambda is a hook.
      OptimizerHook(F function, const char* whole_for = nullptr)
      : whole_for(whole_for), function_(std::move(function)) {}
  void operator()(const std::vector<Variable>& parameters, std::int64_t t) const {
    function_(parameters, t);
  }

  const char* whole_for;

 private:
  Function function_;
};

// Adds rate x to the gradient of each parameter x: the gradient of an L2 penalty.
OptimizerHook weight_decay(double rate);
// Scales all gradients so that the norm of all together is at most the threshold.
OptimizerHook gradient_clipping(double threshold);
// Limits each element of gradients.
OptimizerHook gradient_hard_clipping(double lower, double upper);
// Adds rate sign(x) to the gradient of each parameter x: the gradient of an L1 penalty.
OptimizerHook lasso(double rate);
// Adds normal numbers of variance eta / (1 + t)^0.55 from numpy_random() (Neelakantan et al.,
// 2015).
OptimizerHook gradient_noise(double eta);
// Scales the gradient of each parameter x to its norm, for very large batches (You et al., 2017):
// g = rate (g + weight_decay x) with rate = |x| / (eps + |g| + weight_decay |x|), or 1 where |x| is
// not above the threshold.
OptimizerHook gradient_lars(double threshold = 1e-2, double weight_decay = 0, double eps = 1e-9);

// The parameters of a module with the states of a rule; the arguments of a rule but its options.
class OptimizerBase {
 public:
  // Throws std::invalid_argument for a hook that reads whole parameters where ranks have parts.
  void add_hook(OptimizerHook hook);
  // How many updates there were.
  std::int64_t t() const { return *t_.as<std::int64_t>(); }
  // The numbers of updates, of all and of each parameter, and the states, by the names of Python's
  // files, such as hidden/W/m. A parameter of a run in Python may have fewer updates than there
  // were.
  std::vector<NamedVariable> arrays() const;

 protected:
  // Initially, the first state has one value, and the others are zeros. Files have the first
  // `stored` of them.
  OptimizerBase(const nn::Module& model, std::vector<const char*> states, std::size_t stored,
                double first_state);
  // Calls the hooks and counts an update.
  void begin_update();
  // Updates all parameters by options_at(how many updates a parameter has had with this one). Each
  // is then passed to `finish` with its last state.
  void apply(RuleIndex rule, const std::function<std::vector<double>(std::int64_t t)>& options_at,
             const std::function<void(const Array& x, const Array& state)>& finish = {});

 private:
  void require_whole(const char* what) const;

  std::vector<NamedVariable> parameters_;
  std::vector<std::pair<std::string, int>> parts_;
  std::vector<const char*> state_names_;
  std::size_t stored_;
  std::vector<std::vector<Array>> states_;  // of each parameter
  std::vector<Array> updates_;              // of each parameter, how many it has had
  std::vector<OptimizerHook> hooks_;
  Array t_ = zeros({}, Dtype::int64);
  Array epoch_ = zeros({}, Dtype::int64);  // which Python counts
};

// An optimizer whose hyperparameters are `Options`: with a name of a rule, of the list entry, and
// what its options are at update t.
template <class Options>
class Optimizer : public OptimizerBase {
 public:
  explicit Optimizer(const nn::Module& model, const Options& options = {})
      : OptimizerBase(model, state_names(), stored_states(), first_state()), options(options) {}

  // Updates the parameters by their gradients, which count as zeros where there are none.
  void update() {
    begin_update();
    const auto options_at = [this](std::int64_t t) {
      const auto values = options.at(t);
      return std::vector<double>(values.begin(), values.end());
    };
    if constexpr (requires { &Options::move; }) {
      apply(kRule, options_at,
            [this](const Array& x, const Array& step) { options.move(x, step); });
    } else {
      apply(kRule, options_at);
    }
  }

  Options options;

 private:
  static constexpr RuleIndex kRule = rule_index(Options::rule);
  static_assert(kRule < kUpdateRules, "no rule has this name");

  static constexpr double first_state() {
    if constexpr (requires { Options::first_state; }) return Options::first_state;
    return 0;
  }
  // A rule with a move() computes the last state for it.
  static std::size_t stored_states() {
    return state_names().size() - (requires { &Options::move; } ? 1 : 0);
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

// Hyperparameters, with the names of Python's optimizers and the defaults of the list of rules.
namespace hyperparameters {

struct Sgd {
  static constexpr const char* rule = "sgd";
  double lr = default_of(rule, "lr");
  auto at(std::int64_t) const { return std::array{lr}; }
};

// A rule of the list, and its optimizer, which errors name.
struct Name {
  const char* rule;
  const char* optimizer;
};

// Rules with a momentum have these hyperparameters.
template <auto& kName>
struct Momentum {
  static constexpr const char* rule = kName;
  double lr = default_of(rule, "lr");
  double momentum = default_of(rule, "momentum");
  auto at(std::int64_t) const { return std::array{lr, momentum}; }
};
inline constexpr char kMomentumSgd[] = "momentum_sgd", kNesterovAg[] = "nesterov_ag",
                      kCorrectedMomentumSgd[] = "corrected_momentum_sgd";

struct RmsProp {
  static constexpr const char* rule = "rmsprop";
  double lr = default_of(rule, "lr");
  double alpha = default_of(rule, "alpha");
  double eps = default_of(rule, "eps");
  bool eps_inside_sqrt = default_of(rule, "eps_inside_sqrt") != 0;
  auto at(std::int64_t) const { return std::array{lr, alpha, eps, eps_inside_sqrt ? 1.0 : 0.0}; }
};

// A blend of momentum SGD and RMSprop, a warm-up for very large batches (Akiba et al., 2017).
struct RmsPropMomentumSgd {
  static constexpr const char* rule = "rmsprop_momentum_sgd";
  double lr = default_of(rule, "lr");
  double momentum = default_of(rule, "momentum");
  double alpha = default_of(rule, "alpha");
  double eps = default_of(rule, "eps");
  double rmsprop_rate = default_of(rule, "rmsprop_rate");
  double sgd_share = default_of(rule, "sgd_share");
  auto at(std::int64_t) const {
    return std::array{lr, momentum, alpha, eps, rmsprop_rate, sgd_share};
  }
};

struct AdaGrad {
  static constexpr const char* rule = "adagrad";
  double lr = default_of(rule, "lr");
  double eps = default_of(rule, "eps");
  auto at(std::int64_t) const { return std::array{lr, eps}; }
};

struct AdaDelta {
  static constexpr const char* rule = "adadelta";
  double rho = default_of(rule, "rho");
  double eps = default_of(rule, "eps");
  auto at(std::int64_t) const { return std::array{rho, eps}; }
};

struct RmsPropGraves {
  static constexpr const char* rule = "rmsprop_graves";
  double lr = default_of(rule, "lr");
  double alpha = default_of(rule, "alpha");
  double momentum = default_of(rule, "momentum");
  double eps = default_of(rule, "eps");
  auto at(std::int64_t) const { return std::array{lr, alpha, momentum, eps}; }
};

struct Smorms3 {
  static constexpr const char* rule = "smorms3";
  static constexpr double first_state = 1;  // of mem
  double lr = default_of(rule, "lr");
  double eps = default_of(rule, "eps");
  auto at(std::int64_t) const { return std::array{lr, eps}; }
};

struct Msvag {
  static constexpr const char* rule = "msvag";
  double lr = default_of(rule, "lr");
  double beta = default_of(rule, "beta");
  double eta = default_of(rule, "eta");
  double weight_decay_rate = default_of(rule, "weight_decay_rate");
  std::array<double, 6> at(std::int64_t t) const;
};

// The rules of Adam take these: the hyperparameters and the bounds of an element's step.
struct AdamMoments {
  double alpha, beta1, beta2, eps, eta, weight_decay_rate = 0;
  double lower = 0, upper = std::numeric_limits<double>::infinity();
  std::array<double, 8> at(const char* optimizer, std::int64_t t) const;
};
// Adam and its variants have these hyperparameters.
template <const Name& kName>
struct Adam {
  static constexpr const char* rule = kName.rule;
  double alpha = default_of(rule, "alpha");
  double beta1 = default_of(rule, "beta1");
  double beta2 = default_of(rule, "beta2");
  double eps = default_of(rule, "eps");
  double eta = default_of(rule, "eta");
  double weight_decay_rate = default_of(rule, "weight_decay_rate");
  auto at(std::int64_t t) const {
    return AdamMoments{alpha, beta1, beta2, eps, eta, weight_decay_rate}.at(kName.optimizer, t);
  }
};
// AdaBound and AMSBound bound the steps; the bounds converge to final_lr (Luo et al., 2019).
template <const Name& kName>
struct AdaBound {
  static constexpr const char* rule = kName.rule;
  double alpha = default_of(rule, "alpha");
  double beta1 = default_of(rule, "beta1");
  double beta2 = default_of(rule, "beta2");
  double final_lr = default_of(rule, "final_lr");
  double gamma = default_of(rule, "gamma");
  double eps = default_of(rule, "eps");
  double eta = default_of(rule, "eta");
  double initial_alpha = alpha;  // the bounds follow alpha, relative to this
  auto at(std::int64_t t) const {
    const double last = final_lr * alpha / initial_alpha, grown = gamma * static_cast<double>(t);
    return AdamMoments{.alpha = alpha,
                       .beta1 = beta1,
                       .beta2 = beta2,
                       .eps = eps,
                       .eta = eta,
                       .lower = last * (1 - 1 / (grown + 1)),
                       .upper = last * (1 + 1 / grown)}
        .at(kName.optimizer, t);
  }
};
inline constexpr Name kAdam{"adam", "Adam"}, kAmsGrad{"amsgrad", "AMSGrad"};
inline constexpr Name kAdaBound{"adam", "AdaBound"}, kAmsBound{"amsgrad", "AMSBound"};

// Adam whose step is scaled to the norm of each parameter, for very large batches (You et al.,
// 2020).
struct Lamb {
  static constexpr const char* rule = "lamb_direction";
  double alpha = default_of(rule, "alpha");
  double beta1 = default_of(rule, "beta1");
  double beta2 = default_of(rule, "beta2");
  double eps = default_of(rule, "eps");
  double weight_decay_rate = default_of(rule, "weight_decay_rate");
  std::array<double, 6> at(std::int64_t t) const;
  void move(const Array& x, const Array& direction) const;
};

}  // namespace hyperparameters

using SGD = Optimizer<hyperparameters::Sgd>;
using MomentumSGD = Optimizer<hyperparameters::Momentum<hyperparameters::kMomentumSgd>>;
using NesterovAG = Optimizer<hyperparameters::Momentum<hyperparameters::kNesterovAg>>;
using CorrectedMomentumSGD =
    Optimizer<hyperparameters::Momentum<hyperparameters::kCorrectedMomentumSgd>>;
using RMSprop = Optimizer<hyperparameters::RmsProp>;
using RMSpropMomentumSGD = Optimizer<hyperparameters::RmsPropMomentumSgd>;
using AdaGrad = Optimizer<hyperparameters::AdaGrad>;
using AdaDelta = Optimizer<hyperparameters::AdaDelta>;
using RMSpropGraves = Optimizer<hyperparameters::RmsPropGraves>;
using SMORMS3 = Optimizer<hyperparameters::Smorms3>;
using MSVAG = Optimizer<hyperparameters::Msvag>;
using Adam = Optimizer<hyperparameters::Adam<hyperparameters::kAdam>>;
using AdamW = Adam;  // with a weight_decay_rate
using AMSGrad = Optimizer<hyperparameters::Adam<hyperparameters::kAmsGrad>>;
using AdaBound = Optimizer<hyperparameters::AdaBound<hyperparameters::kAdaBound>>;
using AMSBound = Optimizer<hyperparameters::AdaBound<hyperparameters::kAmsBound>>;
using LAMB = Optimizer<hyperparameters::Lamb>;

}  // namespace renga
