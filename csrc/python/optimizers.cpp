// Binds the update rules; they change ndarrays in place.
#include <pybind11/stl.h>

#include "optimizers/update_rules.h"
#include "python/variable.h"

namespace renga::python {
namespace {

// An array that a rule may write to: a copy of it would take the update with it into nowhere.
struct InPlace {
  Array array;
};

}  // namespace
}  // namespace renga::python

namespace pybind11::detail {

template <>
struct type_caster<renga::python::InPlace> {
  PYBIND11_TYPE_CASTER(renga::python::InPlace, const_name("numpy.ndarray"));
  bool load(handle source, bool) {
    if (!renga::python::is_ndarray(source)) return false;
    const auto x = reinterpret_borrow<array>(source);
    value.array = renga::python::from_numpy(x);
    renga::require<std::invalid_argument>(
        x.writeable() && static_cast<const void*>(value.array.data()) == x.data(),
        "optimizers: expected a writeable, aligned ndarray");
    return true;
  }
};

// An ndarray, or a pair of one that the decay is added to in place and the decay.
template <>
struct type_caster<renga::Gradient> {
  PYBIND11_TYPE_CASTER(renga::Gradient, const_name("numpy.ndarray | tuple[numpy.ndarray, float]"));
  bool load(handle source, bool convert) {
    if (isinstance<tuple>(source)) {
      const auto [array, decay] = source.cast<std::pair<renga::python::InPlace, double>>();
      value = {array.array, decay};
      return true;
    }
    make_caster<renga::Array> array;
    if (!array.load(source, convert)) return false;
    value = cast_op<const renga::Array&>(array);
    return true;
  }
};

}  // namespace pybind11::detail

namespace renga::python {

void bind_optimizers(py::module_& m) {
  py::module_ rules = m.def_submodule("optimizers", "Update rules, in place on ndarrays.");
  rules.def("sgd", [](const InPlace& x, const Gradient& g, double lr) { sgd(x.array, g, lr); });
  rules.def("momentum_sgd",
            [](const InPlace& x, const Gradient& g, const InPlace& v, double lr, double momentum) {
              momentum_sgd(x.array, g, v.array, lr, momentum);
            });
  rules.def("nesterov_ag", [](const InPlace& x, const Gradient& g, const InPlace& v, double lr,
                              double momentum) { nesterov_ag(x.array, g, v.array, lr, momentum); });
  rules.def("rmsprop", [](const InPlace& x, const Gradient& g, const InPlace& ms, double lr,
                          double alpha, double eps, bool eps_inside_sqrt) {
    rmsprop(x.array, g, ms.array, lr, alpha, eps, eps_inside_sqrt);
  });
  rules.def(
      "adam",
      [](const InPlace& x, const Gradient& g, const InPlace& m, const InPlace& v,
         const std::optional<InPlace>& vhat, double alpha, double beta1, double beta2, double eps,
         double eta, double weight_decay_rate, double lower, double upper) {
        adam(x.array, g, m.array, v.array, vhat ? vhat->array : Array(),
             {alpha, beta1, beta2, eps, eta, weight_decay_rate, lower, upper});
      },
      py::arg("x"), py::arg("g"), py::arg("m"), py::arg("v"), py::arg("vhat"), py::arg("alpha"),
      py::arg("beta1"), py::arg("beta2"), py::arg("eps"), py::arg("eta") = 1.0,
      py::arg("weight_decay_rate") = 0.0, py::arg("lower") = 0.0,
      py::arg("upper") = std::numeric_limits<double>::infinity());
  rules.def("corrected_momentum_sgd",
            [](const InPlace& x, const Gradient& g, const InPlace& v, double lr, double momentum) {
              corrected_momentum_sgd(x.array, g, v.array, lr, momentum);
            });
  rules.def("adagrad", [](const InPlace& x, const Gradient& g, const InPlace& h, double lr,
                          double eps) { adagrad(x.array, g, h.array, lr, eps); });
  rules.def("adadelta",
            [](const InPlace& x, const Gradient& g, const InPlace& msg, const InPlace& msdx,
               double rho, double eps) { adadelta(x.array, g, msg.array, msdx.array, rho, eps); });
  rules.def("smorms3", [](const InPlace& x, const Gradient& g, const InPlace& mem, const InPlace& m,
                          const InPlace& v, double lr, double eps) {
    smorms3(x.array, g, mem.array, m.array, v.array, lr, eps);
  });
  rules.def("rmsprop_graves",
            [](const InPlace& x, const Gradient& g, const InPlace& n, const InPlace& m,
               const InPlace& delta, double lr, double alpha, double momentum, double eps) {
              rmsprop_graves(x.array, g, n.array, m.array, delta.array, lr, alpha, momentum, eps);
            });
  rules.def("msvag", [](const InPlace& x, const Gradient& g, const InPlace& m, const InPlace& v,
                        double lr, double beta, double correction, double rho, double eta,
                        double weight_decay_rate) {
    msvag(x.array, g, m.array, v.array, {lr, beta, correction, rho, eta, weight_decay_rate});
  });
  py::class_<Update>(rules, "Update", "A call of a rule that has been put off.");
  rules.def(
      "deferred_updates",
      [](const py::function& body) { return deferred_updates([&] { body(); }); }, py::arg("body"),
      "What `body()` calls of the rules in this thread, put off.");
  rules.def("add_scaled",
            [](const InPlace& y, const Array& x, double scale) { add_scaled(y.array, x, scale); });
}

}  // namespace renga::python
