// The update rules of one element, for the kernels of all devices. Constants are in the compute
// type C. Rules change x and the states, never g.
#pragma once

#include <cmath>

#include "devices/host_device.h"
#include "optimizers/update_rules.h"

namespace renga::rules {

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
  RmsProp(double lr, double alpha, double eps, bool eps_inside_sqrt)
      : lr(C(lr)),
        decay_rate(C(alpha)),
        gain(C(1 - alpha)),
        inside(eps_inside_sqrt ? C(eps) : C(0)),
        outside(eps_inside_sqrt ? C(0) : C(eps)) {}
  RENGA_HOST_DEVICE void operator()(C& x, C g, C& ms) const {
    ms = decay_rate * ms + gain * g * g;
    x -= lr * g / (std::sqrt(ms + inside) + outside);
  }
  C lr, decay_rate, gain, inside, outside;
};

// Adam and its variants.
template <class C>
struct Adam {
  explicit Adam(const AdamStep& s)
      : alpha(C(s.alpha)),
        gain1(C(1 - s.beta1)),
        gain2(C(1 - s.beta2)),
        eps(C(s.eps)),
        eta(C(s.eta)),
        decay(C(s.weight_decay_rate)),
        lower(C(s.lower)),
        upper(C(s.upper)) {}

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

  C alpha, gain1, gain2, eps, eta, decay, lower, upper;
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
  RENGA_HOST_DEVICE void operator()(C& x, C g, C& mem, C& m, C& v) const {
    const C r = 1 / (mem + 1);
    m += r * (g - m);
    v += r * (g * g - v);
    const C ratio = m * m / (v + eps);
    mem = 1 + mem * (1 - ratio);
    x -= smaller(lr, ratio) * g / (std::sqrt(v) + eps);
  }
  C lr, eps;
};

template <class C>
struct RmsPropGraves {
  RmsPropGraves(double lr, double alpha, double momentum, double eps)
      : lr(C(lr)), gain(C(1 - alpha)), momentum(C(momentum)), eps(C(eps)) {}
  RENGA_HOST_DEVICE void operator()(C& x, C g, C& n, C& m, C& delta) const {
    n += gain * (g * g - n);
    m += gain * (g - m);
    delta = momentum * delta - lr * g / std::sqrt(n - m * m + eps);
    x += delta;
  }
  C lr, gain, momentum, eps;
};

template <class C>
struct Msvag {
  // After one step the mean holds all of the variance, which cannot be estimated.
  explicit Msvag(const MsvagStep& s)
      : noise(s.rho < 1 ? C(s.rho / (1 - s.rho)) : C(0)),
        lr(C(s.lr)),
        gain(C(1 - s.beta)),
        correction(C(s.correction)),
        eta(C(s.eta)),
        decay(C(s.weight_decay_rate)) {}
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

// Leaves x as it is.
template <class C>
struct LambDirection {
  explicit LambDirection(const LambStep& s)
      : gain1(C(1 - s.beta1)),
        gain2(C(1 - s.beta2)),
        correction1(C(s.correction1)),
        correction2(C(s.correction2)),
        eps(C(s.eps)),
        decay(C(s.weight_decay_rate)) {}
  RENGA_HOST_DEVICE void operator()(C& x, C g, C& m, C& v, C& d) const {
    m += gain1 * (g - m);
    v += gain2 * (g * g - v);
    d = m / correction1 / (std::sqrt(v / correction2) + eps) + decay * x;
  }
  C gain1, gain2, correction1, correction2, eps, decay;
};

}  // namespace renga::rules
