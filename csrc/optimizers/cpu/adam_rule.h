// The step of Adam and its variants for one element.
#pragma once

#include <algorithm>
#include <cmath>

#include "optimizers/update_rules.h"

namespace renga {

// The constants are in the compute type.
template <class C>
struct AdamRule {
  explicit AdamRule(const AdamStep& s)
      : alpha(C(s.alpha)),
        gain1(C(1 - s.beta1)),
        gain2(C(1 - s.beta2)),
        eps(C(s.eps)),
        eta(C(s.eta)),
        decay(C(s.weight_decay_rate)),
        lower(C(s.lower)),
        upper(C(s.upper)) {}

  void moments(C g, C& m, C& v) const {
    m += gain1 * (g - m);
    v += gain2 * (g * g - v);
  }
  void move(C& x, C m, C v) const {
    const C step = std::min(std::max(alpha / (std::sqrt(v) + eps), lower), upper);
    x -= eta * (step * m + decay * x);
  }
  void operator()(C& x, C g, C& m, C& v) const {
    moments(g, m, v);
    move(x, m, v);
  }
  void operator()(C& x, C g, C& m, C& v, C& vhat) const {
    moments(g, m, v);
    vhat = vhat >= v ? vhat : v;  // a NaN in v gets through
    move(x, m, vhat);
  }

  C alpha, gain1, gain2, eps, eta, decay, lower, upper;
};

}  // namespace renga
