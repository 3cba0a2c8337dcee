// The update rules. Each is a functor, which updates an element in the compute type C on all
// devices, and an entry of list_update_rules().
#pragma once

#include <array>
#include <cmath>
#include <limits>
#include <string_view>

#include "devices/host_device.h"

namespace renga {

// A number by its name, with the default that it has as a hyperparameter of optimizers.
struct Option {
  const char* name;
  double value;
};
// The default of options that are not hyperparameters: an optimizer computes them for each update.
inline constexpr double kComputed = std::numeric_limits<double>::quiet_NaN();

// An entry of the list. Functor<C> is made from the options and called with an element of the
// parameter, its gradient and each state; it changes parameter and states. The functor does not
// take the `sources`: an optimizer computes options, or its own step, from these hyperparameters.
template <template <class> class Functor, std::size_t kStates, std::size_t kOptions,
          std::size_t kSources>
struct UpdateRule {
  const char* name;
  std::array<const char*, kStates> states;
  std::array<Option, kOptions> options;
  const char* formula;
  std::array<Option, kSources> sources;
};

namespace rules {

template <class C>
RENGA_HOST_DEVICE C smaller(C a, C b) {
  return b < a ? b : a;
}

// y *= scale
template <class C>
struct Scale {
  C scale;
  RENGA_HOST_DEVICE void operator()(C& y) const { y *= scale; }
};

// y += scale x
template <class C>
struct AddScaled {
  C scale;
  RENGA_HOST_DEVICE void operator()(C& y, C x) const { y += scale * x; }
};

template <class C>
struct Sgd {
  explicit Sgd(double lr) : lr(C(lr)) {}
  RENGA_HOST_DEVICE void operator()(C& x, C g) const { x -= lr * g; }
  C lr;
};

template <class C>
struct MomentumSgd {
  MomentumSgd(double lr, double momentum) : lr(C(lr)), momentum(C(momentum)) {}
  RENGA_HOST_DEVICE void operator()(C& x, C g, C& v) const {
    v = momentum * v - lr * g;
    x += v;
  }
  C lr, momentum;
};

template <class C>
struct NesterovAg {
  NesterovAg(double lr, double momentum) : lr(C(lr)), momentum(C(momentum)) {}
  RENGA_HOST_DEVICE void operator()(C& x, C g, C& v) const {
    v = momentum * v - lr * g;
    x += momentum * momentum * v - (1 + momentum) * lr * g;
  }
  C lr, momentum;
};

template <class C>
struct RmsProp {
  RmsProp(double lr, double alpha, double eps, double eps_inside_sqrt)
      : lr(C(lr)),
        decay_rate(C(alpha)),
        gain(C(1 - alpha)),
        inside(eps_inside_sqrt != 0 ? C(eps) : C(0)),
        outside(eps_inside_sqrt != 0 ? C(0) : C(eps)) {}
  RENGA_HOST_DEVICE void operator()(C& x, C g, C& ms) const {
    ms = decay_rate * ms + gain * g * g;
    x -= lr * g / (std::sqrt(ms + inside) + outside);
  }
  C lr, decay_rate, gain, inside, outside;
};

// Adam and its variants. `alpha` is corrected for the bias of the first updates; the step size of
// an element, alpha / (√v + eps), is clipped to [lower, upper] (AdaBound).
template <class C>
struct Adam {
  Adam(double alpha, double beta1, double beta2, double eps, double eta, double weight_decay_rate,
       double lower, double upper)
      : alpha(C(alpha)),
        gain1(C(1 - beta1)),
        gain2(C(1 - beta2)),
        eps(C(eps)),
        eta(C(eta)),
        decay(C(weight_decay_rate)),
        lower(C(lower)),
        upper(C(upper)) {}

  RENGA_HOST_DEVICE void moments(C g, C& m, C& v) const {
    m += gain1 * (g - m);
    v += gain2 * (g * g - v);
  }
  RENGA_HOST_DEVICE void move(C& x, C m, C v) const {
    const C rate = alpha / (std::sqrt(v) + eps), raised = rate < lower ? lower : rate;
    x -= eta * (smaller(raised, upper) * m + decay * x);
  }
  RENGA_HOST_DEVICE void operator()(C& x, C g, C& m, C& v) const {
    moments(g, m, v);
    move(x, m, v);
  }
  RENGA_HOST_DEVICE void operator()(C& x, C g, C& m, C& v, C& vhat) const {
    moments(g, m, v);
    vhat = vhat >= v ? vhat : v;  // a NaN in v gets through
    move(x, m, vhat);
  }

  // Takes alpha as corrected for t updates, and corrects it for so many fewer.
  RENGA_HOST_DEVICE void leave_out(C updates, C t) {
    alpha *= correction(t - updates) / correction(t);
  }
  RENGA_HOST_DEVICE C correction(C t) const {
    return std::sqrt(-std::expm1(t * std::log1p(-gain2))) / -std::expm1(t * std::log1p(-gain1));
  }

  C alpha, gain1, gain2, eps, eta, decay, lower, upper;
};

// `sgd_share` of the step is that of momentum SGD, the rest that of RMSprop.
template <class C>
struct RmsPropMomentumSgd {
  RmsPropMomentumSgd(double lr, double momentum, double alpha, double eps, double rmsprop_rate,
                     double sgd_share)
      : lr(C(lr)),
        momentum(C(momentum)),
        gain(C(1 - alpha)),
        eps(C(eps)),
        share(C(sgd_share)),
        rest(C((1 - sgd_share) * rmsprop_rate)) {}
  RENGA_HOST_DEVICE void operator()(C& x, C g, C& ms, C& v) const {
    ms += gain * (g * g - ms);
    const C adaptive = rest == 0 ? C(0) : rest / (std::sqrt(ms) + eps);
    v = momentum * v - (share + adaptive) * g;
    x += lr * v;
  }
  C lr, momentum, gain, eps, share, rest;
};

template <class C>
struct CorrectedMomentumSgd {
  CorrectedMomentumSgd(double lr, double momentum) : lr(C(lr)), momentum(C(momentum)) {}
  RENGA_HOST_DEVICE void operator()(C& x, C g, C& v) const {
    v = momentum * v - g;
    x += lr * v;
  }
  C lr, momentum;
};

template <class C>
struct AdaGrad {
  AdaGrad(double lr, double eps) : lr(C(lr)), eps(C(eps)) {}
  RENGA_HOST_DEVICE void operator()(C& x, C g, C& h) const {
    h += g * g;
    x -= lr * g / (std::sqrt(h) + eps);
  }
  C lr, eps;
};

template <class C>
struct AdaDelta {
  AdaDelta(double rho, double eps) : decay_rate(C(rho)), gain(C(1 - rho)), eps(C(eps)) {}
  RENGA_HOST_DEVICE void operator()(C& x, C g, C& msg, C& msdx) const {
    msg = decay_rate * msg + gain * g * g;
    const C dx = std::sqrt((msdx + eps) / (msg + eps)) * g;
    msdx = decay_rate * msdx + gain * dx * dx;
    x -= dx;
  }
  C decay_rate, gain, eps;
};

template <class C>
struct Smorms3 {
  Smorms3(double lr, double eps) : lr(C(lr)), eps(C(eps)) {}
  RENGA_HOST_DEVICE void operator()(C& x, C grad, C& mem, C& g, C& g2) const {
    const C r = 1 / (mem + 1);
    g += r * (grad - g);
    g2 += r * (grad * grad - g2);
    const C ratio = g * g / (g2 + eps);
    mem = 1 + mem * (1 - ratio);
    x -= smaller(lr, ratio) * grad / (std::sqrt(g2) + eps);
  }
  C lr, eps;
};

template <class C>
struct RmsPropGraves {
  RmsPropGraves(double lr, double alpha, double momentum, double eps)
      : lr(C(lr)), gain(C(1 - alpha)), momentum(C(momentum)), eps(C(eps)) {}
  RENGA_HOST_DEVICE void operator()(C& x, C grad, C& n, C& g, C& delta) const {
    n += gain * (grad * grad - n);
    g += gain * (grad - g);
    delta = momentum * delta - lr * grad / std::sqrt(n - g * g + eps);
    x += delta;
  }
  C lr, gain, momentum, eps;
};

// The moments are divided by `correction`; `rho` is the fraction of the gradient's variance that
// remains in the mean.
template <class C>
struct Msvag {
  // After one step the mean holds all of the variance, which cannot be estimated.
  Msvag(double lr, double beta, double correction, double rho, double eta, double weight_decay_rate)
      : noise(rho < 1 ? C(rho / (1 - rho)) : C(0)),
        lr(C(lr)),
        gain(C(1 - beta)),
        correction(C(correction)),
        eta(C(eta)),
        decay(C(weight_decay_rate)) {}
  RENGA_HOST_DEVICE void operator()(C& x, C g, C& m, C& v) const {
    m += gain * (g - m);
    v += gain * (g * g - v);
    const C mean = m / correction;
    const C square = mean * mean;
    const C total = square + noise * (v / correction - square);
    const C ratio = total == 0 ? C(1) : square / total;
    x -= eta * (lr * ratio * mean + decay * x);
  }
  C noise, lr, gain, correction, eta, decay;
};

// Leaves x as it is. The moments are divided by the corrections of their bias.
template <class C>
struct LambDirection {
  LambDirection(double beta1, double beta2, double eps, double weight_decay_rate,
                double correction1, double correction2)
      : gain1(C(1 - beta1)),
        gain2(C(1 - beta2)),
        correction1(C(correction1)),
        correction2(C(correction2)),
        eps(C(eps)),
        decay(C(weight_decay_rate)) {}
  RENGA_HOST_DEVICE void operator()(C& x, C g, C& m, C& v, C& d) const {
    m += gain1 * (g - m);
    v += gain2 * (g * g - v);
    d = m / correction1 / (std::sqrt(v / correction2) + eps) + decay * x;
  }
  C gain1, gain2, correction1, correction2, eps, decay;
};

template <class... Names>
constexpr std::array<const char*, sizeof...(Names)> names(Names... names) {
  return {names...};
}
template <std::size_t kCount>
constexpr std::array<Option, kCount> numbers(const Option (&options)[kCount]) {
  return std::to_array(options);
}
template <template <class> class Functor, std::size_t kStates, std::size_t kOptions,
          std::size_t kSources = 0>
constexpr UpdateRule<Functor, kStates, kOptions, kSources> rule(
    const char* name, const std::array<const char*, kStates>& states,
    const std::array<Option, kOptions>& options, const char* formula,
    const std::array<Option, kSources>& sources = {}) {
  return {name, states, options, formula, sources};
}

inline constexpr std::array kAdamOptions = numbers({{"alpha", 0.001},
                                                    {"beta1", 0.9},
                                                    {"beta2", 0.999},
                                                    {"eps", 1e-8},
                                                    {"eta", 1},
                                                    {"weight_decay_rate", 0},
                                                    {"lower", kComputed},
                                                    {"upper", kComputed}});
// AdaBound computes the bounds of a step from these.
inline constexpr std::array kAdamSources = numbers({{"final_lr", 0.1}, {"gamma", 1e-3}});

}  // namespace rules

// Names each rule once. States have the names by which optimizers keep them.
template <class Visit>
constexpr void list_update_rules(Visit&& visit) {
  using namespace rules;
  visit(rule<Sgd>("sgd", names(), numbers({{"lr", 0.01}}), "x -= lr grad"));
  visit(rule<MomentumSgd>("momentum_sgd", names("v"), numbers({{"lr", 0.01}, {"momentum", 0.9}}),
                          "v = momentum v - lr grad;  x += v"));
  visit(rule<NesterovAg>("nesterov_ag", names("v"), numbers({{"lr", 0.01}, {"momentum", 0.9}}),
                         "v = momentum v - lr grad;  "
                         "x += momentum² v - (1 + momentum) lr grad"));
  visit(
      rule<RmsProp>("rmsprop", names("ms"),
                    numbers({{"lr", 0.01}, {"alpha", 0.99}, {"eps", 1e-8}, {"eps_inside_sqrt", 0}}),
                    "ms = alpha ms + (1 - alpha) grad²;  "
                    "x -= lr grad / (√ms + eps), or lr grad / √(ms + eps)"));
  visit(rule<Adam>("adam", names("m", "v"), kAdamOptions,
                   "m += (1 - beta1) (grad - m);  v += (1 - beta2) (grad² - v);  "
                   "step = alpha / (√v + eps), at least lower and at most upper;  "
                   "x -= eta (step m + weight_decay_rate x)",
                   kAdamSources));
  visit(rule<Adam>("amsgrad", names("m", "v", "vhat"), kAdamOptions,
                   "adam with vhat = max(vhat, v) in the place of v in the step", kAdamSources));
  visit(rule<CorrectedMomentumSgd>("corrected_momentum_sgd", names("v"),
                                   numbers({{"lr", 0.01}, {"momentum", 0.9}}),
                                   "v = momentum v - grad;  x += lr v"));
  visit(rule<RmsPropMomentumSgd>(
      "rmsprop_momentum_sgd", names("ms", "v"),
      numbers({{"lr", 0.01},
               {"momentum", 0.9},
               {"alpha", 0.99},
               {"eps", 1e-8},
               {"rmsprop_rate", 0.0003},
               {"sgd_share", 1}}),
      "ms += (1 - alpha) (grad² - ms);  "
      "v = momentum v - (s + (1 - s) rmsprop_rate / (√ms + eps)) grad with s = sgd_share;  "
      "x += lr v"));
  visit(rule<AdaGrad>("adagrad", names("h"), numbers({{"lr", 0.001}, {"eps", 1e-8}}),
                      "h += grad²;  x -= lr grad / (√h + eps)"));
  visit(rule<AdaDelta>("adadelta", names("msg", "msdx"), numbers({{"rho", 0.95}, {"eps", 1e-6}}),
                       "msg = rho msg + (1 - rho) grad²;  "
                       "dx = √((msdx + eps) / (msg + eps)) grad;  "
                       "msdx = rho msdx + (1 - rho) dx²;  x -= dx"));
  visit(rule<Smorms3>("smorms3", names("mem", "g", "g2"), numbers({{"lr", 0.001}, {"eps", 1e-16}}),
                      "r = 1 / (mem + 1);  g += r (grad - g);  g2 += r (grad² - g2);  "
                      "ratio = g² / (g2 + eps);  mem = 1 + mem (1 - ratio);  "
                      "x -= min(lr, ratio) grad / (√g2 + eps)"));
  visit(rule<RmsPropGraves>(
      "rmsprop_graves", names("n", "g", "delta"),
      numbers({{"lr", 1e-4}, {"alpha", 0.95}, {"momentum", 0.9}, {"eps", 1e-4}}),
      "n += (1 - alpha) (grad² - n);  g += (1 - alpha) (grad - g);  "
      "delta = momentum delta - lr grad / √(n - g² + eps);  x += delta"));
  visit(rule<Msvag>("msvag", names("m", "v"),
                    numbers({{"lr", 0.1},
                             {"beta", 0.9},
                             {"correction", kComputed},
                             {"rho", kComputed},
                             {"eta", 1},
                             {"weight_decay_rate", 0}}),
                    "m += (1 - beta) (grad - m);  v += (1 - beta) (grad² - v);  "
                    "mean = m / correction;  s = (v / correction - mean²) / (1 - rho);  "
                    "x -= eta (lr mean³ / (mean² + rho s) + weight_decay_rate x)"));
  visit(rule<LambDirection>("lamb_direction", names("m", "v", "d"),
                            numbers({{"beta1", 0.9},
                                     {"beta2", 0.999},
                                     {"eps", 1e-6},
                                     {"weight_decay_rate", 0.01},
                                     {"correction1", kComputed},
                                     {"correction2", kComputed}}),
                            "m += (1 - beta1) (grad - m);  v += (1 - beta2) (grad² - v);  "
                            "d = m / correction1 / (√(v / correction2) + eps) "
                            "+ weight_decay_rate x, by which LAMB changes x",
                            numbers({{"alpha", 0.001}})));
}

// The default of a hyperparameter of a rule, by both names.
consteval double default_of(std::string_view rule, std::string_view hyperparameter) {
  double found = kComputed;
  list_update_rules([&](const auto& entry) {
    if (entry.name != rule) return;
    for (const Option& option : entry.options) {
      if (option.name == hyperparameter) found = option.value;
    }
    for (const Option& source : entry.sources) {
      if (source.name == hyperparameter) found = source.value;
    }
  });
  return found == found ? found : throw "no hyperparameter of a rule has this name";
}

}  // namespace renga
