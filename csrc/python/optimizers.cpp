// Binds the update rules; they change ndarrays in place.
#include <pybind11/stl.h>

#include "optimizers/prediction.h"
#include "optimizers/update_mask.h"
#include "optimizers/update_rules.h"
#include "python/variable.h"

namespace pybind11::detail {

// An ndarray, or a tuple of one that is changed in place, its scale and its decay.
template <>
struct type_caster<renga::Gradient> {
  PYBIND11_TYPE_CASTER(renga::Gradient,
                       const_name("numpy.ndarray | tuple[numpy.ndarray, float, float]"));
  bool load(handle source, bool convert) {
    if (isinstance<tuple>(source)) {
      const auto [array, scale, decay] =
          source.cast<std::tuple<renga::OutputArray, double, double>>();
      value = {array.array, scale, decay};
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
namespace {

// A result or None for a new array, the parameter, its float32 values and its step.
using PredictionArguments = std::tuple<py::object, Array, std::optional<Array>,
                                       std::variant<std::monostate, ScaledStep, AdamMoments>>;

PredictionArguments prediction_arguments(py::handle item) {
  py::detail::make_caster<PredictionArguments> caster;
  if (!caster.load(item, true)) {
    throw py::type_error(
        "predict: expected (out or None, parameter, float32 values or None, ScaledStep, "
        "AdamMoments or None), got " +
        py::repr(item).cast<std::string>());
  }
  return py::detail::cast_op<PredictionArguments&&>(std::move(caster));
}

std::vector<py::object> predict_all(const py::list& items, double steps) {
  std::vector<Prediction> predictions;
  std::vector<py::object> results;
  predictions.reserve(items.size());
  results.reserve(items.size());
  for (const py::handle item : items) {
    auto [out, x, master, step] = prediction_arguments(item);
    const Array y = out.is_none() ? empty_like(x) : writable_array(out, "predict: out");
    results.push_back(out.is_none() ? to_python(y) : out);
    predictions.push_back({y, x, master.value_or(Array()), std::move(step)});
  }
  predict(predictions, steps);
  return results;
}

void bind_prediction(py::module_& rules) {
  py::class_<ScaledStep>(rules, "ScaledStep", "The step ``x += scale d``.")
      .def(py::init<Array, double>(), py::arg("d"), py::arg("scale"));
  py::class_<AdamMoments>(rules, "AdamMoments", "The step of ``adam`` from these moments.")
      .def(py::init([](const Array& m, const Array& v, double alpha, double beta1, double beta2,
                       double eps, double eta, double weight_decay_rate, double lower,
                       double upper) {
             return AdamMoments{
                 m, v, {alpha, beta1, beta2, eps, eta, weight_decay_rate, lower, upper}};
           }),
           py::arg("m"), py::arg("v"), py::arg("alpha"), py::arg("beta1"), py::arg("beta2"),
           py::arg("eps"), py::arg("eta"), py::arg("weight_decay_rate"), py::arg("lower"),
           py::arg("upper"));
  rules.def("predict", &predict_all, py::arg("predictions"), py::arg("steps"),
            "``x + steps · step(x)`` for each (out or None, parameter x, float32 values of x or "
            "None, step or None), in the outs or in new arrays.");
}

}  // namespace

void bind_optimizers(py::module_& m) {
  py::module_ rules = m.def_submodule("optimizers", "Update rules, in place on ndarrays.");
  rules.def("sgd", [](const OutputArray& x, const Gradient& g, double lr) { sgd(x.array, g, lr); });
  rules.def("momentum_sgd",
            [](const OutputArray& x, const Gradient& g, const OutputArray& v, double lr,
               double momentum) { momentum_sgd(x.array, g, v.array, lr, momentum); });
  rules.def("nesterov_ag",
            [](const OutputArray& x, const Gradient& g, const OutputArray& v, double lr,
               double momentum) { nesterov_ag(x.array, g, v.array, lr, momentum); });
  rules.def("rmsprop", [](const OutputArray& x, const Gradient& g, const OutputArray& ms, double lr,
                          double alpha, double eps, bool eps_inside_sqrt) {
    rmsprop(x.array, g, ms.array, lr, alpha, eps, eps_inside_sqrt);
  });
  rules.def(
      "adam",
      [](const OutputArray& x, const Gradient& g, const OutputArray& m, const OutputArray& v,
         const std::optional<OutputArray>& vhat, double alpha, double beta1, double beta2,
         double eps, double eta, double weight_decay_rate, double lower, double upper) {
        adam(x.array, g, m.array, v.array, vhat ? vhat->array : Array(),
             {alpha, beta1, beta2, eps, eta, weight_decay_rate, lower, upper});
      },
      py::arg("x"), py::arg("g"), py::arg("m"), py::arg("v"), py::arg("vhat"), py::arg("alpha"),
      py::arg("beta1"), py::arg("beta2"), py::arg("eps"), py::arg("eta") = 1.0,
      py::arg("weight_decay_rate") = 0.0, py::arg("lower") = 0.0,
      py::arg("upper") = std::numeric_limits<double>::infinity());
  rules.def("corrected_momentum_sgd",
            [](const OutputArray& x, const Gradient& g, const OutputArray& v, double lr,
               double momentum) { corrected_momentum_sgd(x.array, g, v.array, lr, momentum); });
  rules.def("adagrad", [](const OutputArray& x, const Gradient& g, const OutputArray& h, double lr,
                          double eps) { adagrad(x.array, g, h.array, lr, eps); });
  rules.def("adadelta", [](const OutputArray& x, const Gradient& g, const OutputArray& msg,
                           const OutputArray& msdx, double rho,
                           double eps) { adadelta(x.array, g, msg.array, msdx.array, rho, eps); });
  rules.def("smorms3", [](const OutputArray& x, const Gradient& g, const OutputArray& mem,
                          const OutputArray& m, const OutputArray& v, double lr, double eps) {
    smorms3(x.array, g, mem.array, m.array, v.array, lr, eps);
  });
  rules.def("rmsprop_graves",
            [](const OutputArray& x, const Gradient& g, const OutputArray& n, const OutputArray& m,
               const OutputArray& delta, double lr, double alpha, double momentum, double eps) {
              rmsprop_graves(x.array, g, n.array, m.array, delta.array, lr, alpha, momentum, eps);
            });
  rules.def("msvag", [](const OutputArray& x, const Gradient& g, const OutputArray& m,
                        const OutputArray& v, double lr, double beta, double correction, double rho,
                        double eta, double weight_decay_rate) {
    msvag(x.array, g, m.array, v.array, {lr, beta, correction, rho, eta, weight_decay_rate});
  });
  rules.def("lamb_direction",
            [](const OutputArray& x, const Gradient& g, const OutputArray& m, const OutputArray& v,
               const OutputArray& d, double beta1, double beta2, double eps,
               double weight_decay_rate, double correction1, double correction2) {
              lamb_direction(x.array, g, m.array, v.array, d.array,
                             {beta1, beta2, eps, weight_decay_rate, correction1, correction2});
            });
  py::class_<Update>(rules, "Update", "A deferred call of a rule.");
  rules.def(
      "deferred_updates",
      [](const py::function& body) { return deferred_updates([&] { body(); }); }, py::arg("body"),
      "The calls of rules that `body()` makes in this thread, deferred.");
  rules.def(
      "update_together",
      [](const std::string& device, const py::function& body) {
        update_together(device_from_string(device), [&] { body(); });
      },
      py::arg("device"), py::arg("body"),
      "Calls `body()`, whose calls of rules on arrays of `device` may take effect at its end.");
  rules.def(
      "set_update_mask",
      [](const std::optional<Array>& values, double t) {
        if (values) {
          require(
              values->dtype() == Dtype::float32 && values->size() == 2 && values->is_contiguous(),
              "set_update_mask: expected 2 adjoining numbers of float32, got ", values->shape(),
              " of ", values->dtype());
        }
        update_mask() = {values.value_or(Array()), t};
      },
      py::arg("values"), py::arg("t") = 0.0,
      "Until it is set to None, updates of this thread on the device of `values` change nothing "
      "unless values[0] is 0. values[1] of the t updates before the next one's end changed "
      "nothing.");
  rules.def("add_scaled", [](const OutputArray& y, const Array& x, double scale) {
    add_scaled(y.array, x, scale);
  });
  bind_prediction(rules);
}

}  // namespace renga::python
