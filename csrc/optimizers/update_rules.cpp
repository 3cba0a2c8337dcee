#include "optimizers/update_rules.h"

#include <array>

namespace renga {

constinit KernelTable<UpdateKernels> update_kernels{"update rules"};

namespace {

thread_local std::vector<Update>* deferred = nullptr;

void check(const char* rule, const Array& x, const Array& y) {
  require(is_float(x.dtype()), rule, ": expected a float parameter, got ", x.dtype());
  require(y.shape() == x.shape() && y.dtype() == x.dtype() && y.device() == x.device(), rule,
          ": expected arrays like the parameter, ", x.shape(), " of ", x.dtype(), " on ",
          to_string(x.device()), ", got ", y.shape(), " of ", y.dtype(), " on ",
          to_string(y.device()));
}

// Calls the kernel of x's device, or defers the call.
template <class Kernel, std::size_t N, class... Options>
void run(const char* name, Kernel UpdateKernels::*rule, const Array& x, const Gradient& g,
         const std::array<Array, N>& states, const Options&... options) {
  check(name, x, g.array);
  for (const Array& state : states) check(name, x, state);
  const Kernel kernel = update_kernels.on(x.device()).*rule;
  const auto apply = [=](const Array& x, const Gradient& g, const Array* states) {
    [&]<std::size_t... K>(std::index_sequence<K...>) { kernel(x, g, states[K]..., options...); }
    (std::make_index_sequence<N>());
  };
  if (deferred != nullptr) {
    deferred->push_back({x, g, {states.begin(), states.end()}, apply});
  } else {
    apply(x, g, states.data());
  }
}

}  // namespace

void update_together(Device device, const std::function<void()>& body) {
  const auto together = update_kernels.on(device).together;
  together == nullptr ? body() : together(body);
}

std::vector<Update> deferred_updates(const std::function<void()>& body) {
  std::vector<Update> updates;
  struct Deferring {
    explicit Deferring(std::vector<Update>* to) : outer(std::exchange(deferred, to)) {}
    ~Deferring() { deferred = outer; }
    std::vector<Update>* outer;
  } const deferring(&updates);
  body();
  return updates;
}

void sgd(const Array& x, const Gradient& g, double lr) {
  run("sgd", &UpdateKernels::sgd, x, g, std::array<Array, 0>{}, lr);
}

void momentum_sgd(const Array& x, const Gradient& g, const Array& v, double lr, double momentum) {
  run("momentum_sgd", &UpdateKernels::momentum_sgd, x, g, std::array{v}, lr, momentum);
}

void nesterov_ag(const Array& x, const Gradient& g, const Array& v, double lr, double momentum) {
  run("nesterov_ag", &UpdateKernels::nesterov_ag, x, g, std::array{v}, lr, momentum);
}

void rmsprop(const Array& x, const Gradient& g, const Array& ms, double lr, double alpha,
             double eps, bool eps_inside_sqrt) {
  run("rmsprop", &UpdateKernels::rmsprop, x, g, std::array{ms}, lr, alpha, eps, eps_inside_sqrt);
}

void adam(const Array& x, const Gradient& g, const Array& m, const Array& v, const Array& vhat,
          const AdamStep& step) {
  if (vhat.defined()) {
    run("adam", &UpdateKernels::amsgrad, x, g, std::array{m, v, vhat}, step);
  } else {
    run("adam", &UpdateKernels::adam, x, g, std::array{m, v}, step);
  }
}

void corrected_momentum_sgd(const Array& x, const Gradient& g, const Array& v, double lr,
                            double momentum) {
  run("corrected_momentum_sgd", &UpdateKernels::corrected_momentum_sgd, x, g, std::array{v}, lr,
      momentum);
}

void adagrad(const Array& x, const Gradient& g, const Array& h, double lr, double eps) {
  run("adagrad", &UpdateKernels::adagrad, x, g, std::array{h}, lr, eps);
}

void adadelta(const Array& x, const Gradient& g, const Array& msg, const Array& msdx, double rho,
              double eps) {
  run("adadelta", &UpdateKernels::adadelta, x, g, std::array{msg, msdx}, rho, eps);
}

void smorms3(const Array& x, const Gradient& g, const Array& mem, const Array& m, const Array& v,
             double lr, double eps) {
  run("smorms3", &UpdateKernels::smorms3, x, g, std::array{mem, m, v}, lr, eps);
}

void rmsprop_graves(const Array& x, const Gradient& g, const Array& n, const Array& m,
                    const Array& delta, double lr, double alpha, double momentum, double eps) {
  run("rmsprop_graves", &UpdateKernels::rmsprop_graves, x, g, std::array{n, m, delta}, lr, alpha,
      momentum, eps);
}

void msvag(const Array& x, const Gradient& g, const Array& m, const Array& v,
           const MsvagStep& step) {
  run("msvag", &UpdateKernels::msvag, x, g, std::array{m, v}, step);
}

void lamb_direction(const Array& x, const Gradient& g, const Array& m, const Array& v,
                    const Array& d, const LambStep& step) {
  run("lamb_direction", &UpdateKernels::lamb_direction, x, g, std::array{m, v, d}, step);
}

void add_scaled(const Array& y, const Array& x, double scale) {
  check("add_scaled", y, x);
  update_kernels.on(y.device()).add_scaled(y, x, scale);
}

}  // namespace renga
