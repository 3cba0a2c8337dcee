// The kernels of a device from its `update`: update<Rule>(x, g, states, options...) applies
// Rule<C>(options...) to every element, of g after its decay.
#pragma once

#include <array>

#include "optimizers/rules.h"

namespace renga {

template <class Map>
struct RuleKernels {
  static void sgd(const Array& x, const Gradient& g, double lr) {
    Map::template update<rules::Sgd>(x, g, std::array<Array, 0>{}, lr);
  }
  static void momentum_sgd(const Array& x, const Gradient& g, const Array& v, double lr,
                           double momentum) {
    Map::template update<rules::MomentumSgd>(x, g, std::array{v}, lr, momentum);
  }
  static void nesterov_ag(const Array& x, const Gradient& g, const Array& v, double lr,
                          double momentum) {
    Map::template update<rules::NesterovAg>(x, g, std::array{v}, lr, momentum);
  }
  static void rmsprop(const Array& x, const Gradient& g, const Array& ms, double lr, double alpha,
                      double eps, bool eps_inside_sqrt) {
    Map::template update<rules::RmsProp>(x, g, std::array{ms}, lr, alpha, eps, eps_inside_sqrt);
  }
  static void adam(const Array& x, const Gradient& g, const Array& m, const Array& v,
                   const AdamStep& step) {
    Map::template update<rules::Adam>(x, g, std::array{m, v}, step);
  }
  static void amsgrad(const Array& x, const Gradient& g, const Array& m, const Array& v,
                      const Array& vhat, const AdamStep& step) {
    Map::template update<rules::Adam>(x, g, std::array{m, v, vhat}, step);
  }
  static void corrected_momentum_sgd(const Array& x, const Gradient& g, const Array& v, double lr,
                                     double momentum) {
    Map::template update<rules::CorrectedMomentumSgd>(x, g, std::array{v}, lr, momentum);
  }
  static void adagrad(const Array& x, const Gradient& g, const Array& h, double lr, double eps) {
    Map::template update<rules::AdaGrad>(x, g, std::array{h}, lr, eps);
  }
  static void adadelta(const Array& x, const Gradient& g, const Array& msg, const Array& msdx,
                       double rho, double eps) {
    Map::template update<rules::AdaDelta>(x, g, std::array{msg, msdx}, rho, eps);
  }
  static void smorms3(const Array& x, const Gradient& g, const Array& mem, const Array& m,
                      const Array& v, double lr, double eps) {
    Map::template update<rules::Smorms3>(x, g, std::array{mem, m, v}, lr, eps);
  }
  static void rmsprop_graves(const Array& x, const Gradient& g, const Array& n, const Array& m,
                             const Array& delta, double lr, double alpha, double momentum,
                             double eps) {
    Map::template update<rules::RmsPropGraves>(x, g, std::array{n, m, delta}, lr, alpha, momentum,
                                               eps);
  }
  static void msvag(const Array& x, const Gradient& g, const Array& m, const Array& v,
                    const MsvagStep& step) {
    Map::template update<rules::Msvag>(x, g, std::array{m, v}, step);
  }
  static void lamb_direction(const Array& x, const Gradient& g, const Array& m, const Array& v,
                             const Array& d, const LambStep& step) {
    Map::template update<rules::LambDirection>(x, g, std::array{m, v, d}, step);
  }

  static constexpr UpdateKernels table(decltype(UpdateKernels::add_scaled) add_scaled,
                                       decltype(UpdateKernels::together) together = nullptr) {
    return {sgd,
            momentum_sgd,
            nesterov_ag,
            rmsprop,
            adam,
            amsgrad,
            corrected_momentum_sgd,
            adagrad,
            adadelta,
            smorms3,
            rmsprop_graves,
            msvag,
            lamb_direction,
            add_scaled,
            together};
  }
};

}  // namespace renga
