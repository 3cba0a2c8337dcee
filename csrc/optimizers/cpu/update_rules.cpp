#include <cmath>

#include "optimizers/cpu/adam_rule.h"
#include "optimizers/cpu/fused_update.h"

namespace renga {
namespace {

void sgd_cpu(const Array& x, const Gradient& g, double lr) {
  fused_update([=]<class C>(Type<C>) { return [lr = C(lr)](C& x, C g) { x -= lr * g; }; }, x, g);
}

void momentum_sgd_cpu(const Array& x, const Gradient& g, const Array& v, double lr,
                      double momentum) {
  fused_update(
      [=]<class C>(Type<C>) {
        return [lr = C(lr), momentum = C(momentum)](C& x, C g, C& v) {
          v = momentum * v - lr * g;
          x += v;
        };
      },
      x, g, v);
}

void nesterov_ag_cpu(const Array& x, const Gradient& g, const Array& v, double lr,
                     double momentum) {
  fused_update(
      [=]<class C>(Type<C>) {
        return [lr = C(lr), momentum = C(momentum)](C& x, C g, C& v) {
          v = momentum * v - lr * g;
          x += momentum * momentum * v - (1 + momentum) * lr * g;
        };
      },
      x, g, v);
}

void rmsprop_cpu(const Array& x, const Gradient& g, const Array& ms, double lr, double alpha,
                 double eps, bool eps_inside_sqrt) {
  fused_update(
      [=]<class C>(Type<C>) {
        const C inside = eps_inside_sqrt ? C(eps) : C(0);
        const C outside = eps_inside_sqrt ? C(0) : C(eps);
        return [=, lr = C(lr), decay_rate = C(alpha), gain = C(1 - alpha)](C& x, C g, C& ms) {
          ms = decay_rate * ms + gain * g * g;
          x -= lr * g / (std::sqrt(ms + inside) + outside);
        };
      },
      x, g, ms);
}

void adam_cpu(const Array& x, const Gradient& g, const Array& m, const Array& v,
              const AdamStep& step) {
  fused_update([&]<class C>(Type<C>) { return AdamRule<C>(step); }, x, g, m, v);
}

void amsgrad_cpu(const Array& x, const Gradient& g, const Array& m, const Array& v,
                 const Array& vhat, const AdamStep& step) {
  fused_update([&]<class C>(Type<C>) { return AdamRule<C>(step); }, x, g, m, v, vhat);
}

void corrected_momentum_sgd_cpu(const Array& x, const Gradient& g, const Array& v, double lr,
                                double momentum) {
  fused_update(
      [=]<class C>(Type<C>) {
        return [lr = C(lr), momentum = C(momentum)](C& x, C g, C& v) {
          v = momentum * v - g;
          x += lr * v;
        };
      },
      x, g, v);
}

void adagrad_cpu(const Array& x, const Gradient& g, const Array& h, double lr, double eps) {
  fused_update(
      [=]<class C>(Type<C>) {
        return [lr = C(lr), eps = C(eps)](C& x, C g, C& h) {
          h += g * g;
          x -= lr * g / (std::sqrt(h) + eps);
        };
      },
      x, g, h);
}

void adadelta_cpu(const Array& x, const Gradient& g, const Array& msg, const Array& msdx,
                  double rho, double eps) {
  fused_update(
      [=]<class C>(Type<C>) {
        return [decay_rate = C(rho), gain = C(1 - rho), eps = C(eps)](C& x, C g, C& msg, C& msdx) {
          msg = decay_rate * msg + gain * g * g;
          const C dx = std::sqrt((msdx + eps) / (msg + eps)) * g;
          msdx = decay_rate * msdx + gain * dx * dx;
          x -= dx;
        };
      },
      x, g, msg, msdx);
}

void smorms3_cpu(const Array& x, const Gradient& g, const Array& mem, const Array& m,
                 const Array& v, double lr, double eps) {
  fused_update(
      [=]<class C>(Type<C>) {
        return [lr = C(lr), eps = C(eps)](C& x, C g, C& mem, C& m, C& v) {
          const C r = 1 / (mem + 1);
          m += r * (g - m);
          v += r * (g * g - v);
          const C ratio = m * m / (v + eps);
          mem = 1 + mem * (1 - ratio);
          x -= std::min(lr, ratio) * g / (std::sqrt(v) + eps);
        };
      },
      x, g, mem, m, v);
}

void rmsprop_graves_cpu(const Array& x, const Gradient& g, const Array& n, const Array& m,
                        const Array& delta, double lr, double alpha, double momentum, double eps) {
  fused_update(
      [=]<class C>(Type<C>) {
        return [lr = C(lr), gain = C(1 - alpha), momentum = C(momentum), eps = C(eps)](
                   C& x, C g, C& n, C& m, C& delta) {
          n += gain * (g * g - n);
          m += gain * (g - m);
          delta = momentum * delta - lr * g / std::sqrt(n - m * m + eps);
          x += delta;
        };
      },
      x, g, n, m, delta);
}

void msvag_cpu(const Array& x, const Gradient& g, const Array& m, const Array& v,
               const MsvagStep& s) {
  fused_update(
      [&]<class C>(Type<C>) {
        // After one step the mean holds all of the variance, which cannot be estimated.
        const C noise = s.rho < 1 ? C(s.rho / (1 - s.rho)) : C(0);
        return [=, lr = C(s.lr), gain = C(1 - s.beta), correction = C(s.correction), eta = C(s.eta),
                decay = C(s.weight_decay_rate)](C& x, C g, C& m, C& v) {
          m += gain * (g - m);
          v += gain * (g * g - v);
          const C mean = m / correction;
          const C square = mean * mean;
          const C total = square + noise * (v / correction - square);
          const C ratio = total == 0 ? C(1) : square / total;
          x -= eta * (lr * ratio * mean + decay * x);
        };
      },
      x, g, m, v);
}

void add_scaled_cpu(const Array& y, const Array& x, double scale) {
  fused_update([=]<class C>(Type<C>) { return AddScaled<C>{C(scale)}; }, y, x);
}

[[maybe_unused]] const bool registered =
    update_kernels.add(0, {sgd_cpu, momentum_sgd_cpu, nesterov_ag_cpu, rmsprop_cpu, adam_cpu,
                           amsgrad_cpu, corrected_momentum_sgd_cpu, adagrad_cpu, adadelta_cpu,
                           smorms3_cpu, rmsprop_graves_cpu, msvag_cpu, add_scaled_cpu});

}  // namespace
}  // namespace renga
