#include "optimizers/update_rules.h"

#include <initializer_list>

namespace renga {

constinit KernelTable<UpdateKernels> update_kernels{"update rules"};

namespace {

const UpdateKernels& kernels(const char* rule, const Array& x,
                             std::initializer_list<const Array*> others) {
  require(is_float(x.dtype()), rule, ": expected a float parameter, got ", x.dtype());
  for (const Array* y : others) {
    require(y->shape() == x.shape() && y->dtype() == x.dtype() && y->device() == x.device(), rule,
            ": expected arrays like the parameter, ", x.shape(), " of ", x.dtype(), " on ",
            to_string(x.device()), ", got ", y->shape(), " of ", y->dtype(), " on ",
            to_string(y->device()));
  }
  return update_kernels.on(x.device());
}

}  // namespace

void sgd(const Array& x, const Gradient& g, double lr) {
  kernels("sgd", x, {&g.array}).sgd(x, g, lr);
}

void momentum_sgd(const Array& x, const Gradient& g, const Array& v, double lr, double momentum) {
  kernels("momentum_sgd", x, {&g.array, &v}).momentum_sgd(x, g, v, lr, momentum);
}

void nesterov_ag(const Array& x, const Gradient& g, const Array& v, double lr, double momentum) {
  kernels("nesterov_ag", x, {&g.array, &v}).nesterov_ag(x, g, v, lr, momentum);
}

void rmsprop(const Array& x, const Gradient& g, const Array& ms, double lr, double alpha,
             double eps, bool eps_inside_sqrt) {
  kernels("rmsprop", x, {&g.array, &ms}).rmsprop(x, g, ms, lr, alpha, eps, eps_inside_sqrt);
}

void adam(const Array& x, const Gradient& g, const Array& m, const Array& v, const Array& vhat,
          const AdamStep& step) {
  if (vhat.defined()) {
    kernels("adam", x, {&g.array, &m, &v, &vhat}).amsgrad(x, g, m, v, vhat, step);
  } else {
    kernels("adam", x, {&g.array, &m, &v}).adam(x, g, m, v, step);
  }
}

void corrected_momentum_sgd(const Array& x, const Gradient& g, const Array& v, double lr,
                            double momentum) {
  kernels("corrected_momentum_sgd", x, {&g.array, &v})
      .corrected_momentum_sgd(x, g, v, lr, momentum);
}

void adagrad(const Array& x, const Gradient& g, const Array& h, double lr, double eps) {
  kernels("adagrad", x, {&g.array, &h}).adagrad(x, g, h, lr, eps);
}

void adadelta(const Array& x, const Gradient& g, const Array& msg, const Array& msdx, double rho,
              double eps) {
  kernels("adadelta", x, {&g.array, &msg, &msdx}).adadelta(x, g, msg, msdx, rho, eps);
}

void smorms3(const Array& x, const Gradient& g, const Array& mem, const Array& m, const Array& v,
             double lr, double eps) {
  kernels("smorms3", x, {&g.array, &mem, &m, &v}).smorms3(x, g, mem, m, v, lr, eps);
}

void rmsprop_graves(const Array& x, const Gradient& g, const Array& n, const Array& m,
                    const Array& delta, double lr, double alpha, double momentum, double eps) {
  kernels("rmsprop_graves", x, {&g.array, &n, &m, &delta})
      .rmsprop_graves(x, g, n, m, delta, lr, alpha, momentum, eps);
}

void msvag(const Array& x, const Gradient& g, const Array& m, const Array& v,
           const MsvagStep& step) {
  kernels("msvag", x, {&g.array, &m, &v}).msvag(x, g, m, v, step);
}

void add_scaled(const Array& y, const Array& x, double scale) {
  kernels("add_scaled", y, {&x}).add_scaled(y, x, scale);
}

}  // namespace renga
