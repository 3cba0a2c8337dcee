// Update rules: each updates a parameter and its optimizer state in one pass over memory.
#pragma once

#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include "devices/kernel_table.h"
#include "tensor/array.h"

namespace renga {

// Options of one step of Adam. The step size of an element is alpha / (√v + eps), clipped to
// [lower, upper] (AdaBound).
struct AdamStep {
  double alpha;  // corrected for the bias of the first moments
  double beta1;
  double beta2;
  double eps;
  double eta = 1;
  double weight_decay_rate = 0;
  double lower = 0;
  double upper = std::numeric_limits<double>::infinity();
};

// Options of one step of M-SVAG: the moments are divided by `correction`, and `rho` is the fraction
// of the gradient's variance that remains in the mean.
struct MsvagStep {
  double lr;
  double beta;
  double correction;
  double rho;
  double eta = 1;
  double weight_decay_rate = 0;
};

// Options of one step of LAMB. The moments are divided by the corrections of their bias.
struct LambStep {
  double beta1;
  double beta2;
  double eps;
  double weight_decay_rate;
  double correction1;
  double correction2;
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
};

struct UpdateKernels {
  void (*sgd)(const Array& x, const Gradient& g, double lr);
  void (*momentum_sgd)(const Array& x, const Gradient& g, const Array& v, double lr,
                       double momentum);
  void (*nesterov_ag)(const Array& x, const Gradient& g, const Array& v, double lr,
                      double momentum);
  void (*rmsprop)(const Array& x, const Gradient& g, const Array& ms, double lr, double alpha,
                  double eps, bool eps_inside_sqrt);
  void (*adam)(const Array& x, const Gradient& g, const Array& m, const Array& v,
               const AdamStep& step);
  void (*amsgrad)(const Array& x, const Gradient& g, const Array& m, const Array& v,
                  const Array& vhat, const AdamStep& step);
  void (*corrected_momentum_sgd)(const Array& x, const Gradient& g, const Array& v, double lr,
                                 double momentum);
  void (*adagrad)(const Array& x, const Gradient& g, const Array& h, double lr, double eps);
  void (*adadelta)(const Array& x, const Gradient& g, const Array& msg, const Array& msdx,
                   double rho, double eps);
  void (*smorms3)(const Array& x, const Gradient& g, const Array& mem, const Array& m,
                  const Array& v, double lr, double eps);
  void (*rmsprop_graves)(const Array& x, const Gradient& g, const Array& n, const Array& m,
                         const Array& delta, double lr, double alpha, double momentum, double eps);
  void (*msvag)(const Array& x, const Gradient& g, const Array& m, const Array& v,
                const MsvagStep& step);
  void (*lamb_direction)(const Array& x, const Gradient& g, const Array& m, const Array& v,
                         const Array& d, const LambStep& step);
  void (*add_scaled)(const Array& y, const Array& x, double scale);
  // Calls `body`, whose calls of the rules may take effect as late as its end; may be null.
  void (*together)(const std::function<void()>& body) = nullptr;
};
extern KernelTable<UpdateKernels> update_kernels;

// A deferred call of one of the rules below. It may be applied in parts, to arrays with the same
// elements of x, g and all states.
struct Update {
  Array x;
  Gradient g;
  std::vector<Array> states;
  std::function<void(const Array& x, const Gradient& g, const Array* states)> apply;
};

// Runs `body`, which calls rules on arrays of one device. The device may make all of these updates
// at the end, in one launch, so `body` reads nothing that they write.
void update_together(Device device, const std::function<void()>& body);

// Runs `body` and returns its calls of the rules below on this thread, deferred.
std::vector<Update> deferred_updates(const std::function<void()>& body);

// All arrays of a call have one shape, float dtype and device. All are updated, the gradient only
// by its scale and decay.

// x -= lr g
void sgd(const Array& x, const Gradient& g, double lr);
// v = momentum v - lr g;  x += v
void momentum_sgd(const Array& x, const Gradient& g, const Array& v, double lr, double momentum);
// v = momentum v - lr g;  x += momentum² v - (1 + momentum) lr g
void nesterov_ag(const Array& x, const Gradient& g, const Array& v, double lr, double momentum);
// ms = alpha ms + (1 - alpha) g²;  x -= lr g / (√ms + eps), or lr g / √(ms + eps)
void rmsprop(const Array& x, const Gradient& g, const Array& ms, double lr, double alpha,
             double eps, bool eps_inside_sqrt);
// m += (1 - beta1) (g - m);  v += (1 - beta2) (g² - v);
// x -= eta (step m + weight_decay_rate x). With vhat, AMSGrad: its running maximum replaces v.
void adam(const Array& x, const Gradient& g, const Array& m, const Array& v, const Array& vhat,
          const AdamStep& step);
// v = momentum v - g;  x += lr v
void corrected_momentum_sgd(const Array& x, const Gradient& g, const Array& v, double lr,
                            double momentum);
// h += g²;  x -= lr g / (√h + eps)
void adagrad(const Array& x, const Gradient& g, const Array& h, double lr, double eps);
// msg = rho msg + (1 - rho) g²;  dx = √((msdx + eps) / (msg + eps)) g
// msdx = rho msdx + (1 - rho) dx²;  x -= dx
void adadelta(const Array& x, const Gradient& g, const Array& msg, const Array& msdx, double rho,
              double eps);
// r = 1 / (mem + 1);  m += r (g - m);  v += r (g² - v);  ratio = m² / (v + eps)
// mem = 1 + mem (1 - ratio);  x -= min(lr, ratio) g / (√v + eps)
void smorms3(const Array& x, const Gradient& g, const Array& mem, const Array& m, const Array& v,
             double lr, double eps);
// n += (1 - alpha) (g² - n);  m += (1 - alpha) (g - m)
// delta = momentum delta - lr g / √(n - m² + eps);  x += delta
void rmsprop_graves(const Array& x, const Gradient& g, const Array& n, const Array& m,
                    const Array& delta, double lr, double alpha, double momentum, double eps);
// m += (1 - beta) (g - m);  v += (1 - beta) (g² - v);  both corrected for their bias
// s = (v - m²) / (1 - rho);  x -= eta (lr m³ / (m² + rho s) + weight_decay_rate x)
void msvag(const Array& x, const Gradient& g, const Array& m, const Array& v,
           const MsvagStep& step);
// m += (1 - beta1) (g - m);  v += (1 - beta2) (g² - v);  both corrected for their bias
// d = m / (√v + eps) + weight_decay_rate x, by which LAMB changes x times a factor of their norms
void lamb_direction(const Array& x, const Gradient& g, const Array& m, const Array& v,
                    const Array& d, const LambStep& step);
// y += scale x, never deferred
void add_scaled(const Array& y, const Array& x, double scale);

}  // namespace renga
