// Binds the update rules; they change ndarrays in place.
#include <pybind11/stl.h>

#include <array>
#include <cmath>
#include <span>

#include "devices/gil_release.h"
#include "lazy/deferred.h"
#include "optimizers/norms.h"
#include "optimizers/prediction.h"
#include "optimizers/update_rules.h"
#include "python/variable.h"

namespace pybind11::detail {

// An ndarray, or a tuple of one that is changed in place, its scale and its decay, and of an
// UpdateMask if there is one.
template <>
struct type_caster<renga::Gradient> {
  PYBIND11_TYPE_CASTER(renga::Gradient,
                       const_name("numpy.ndarray | tuple[numpy.ndarray, float, float] | "
                                  "tuple[numpy.ndarray, float, float, numpy.ndarray, float]"));
  bool load(handle source, bool convert) {
    if (!isinstance<tuple>(source)) {
      make_caster<renga::Array> array;
      if (!array.load(source, convert)) return false;
      value = cast_op<const renga::Array&>(array);
      return true;
    }
    const auto given = reinterpret_borrow<tuple>(source);
    value = {given[0].cast<renga::OutputArray>().array, given[1].cast<double>(),
             given[2].cast<double>()};
    if (given.size() > 3) value.mask = {given[3].cast<renga::Array>(), given[4].cast<double>()};
    return true;
  }
};

}  // namespace pybind11::detail

namespace renga::python {
namespace {

// The members of `values` that have these names, in their order. Arrays are written.
template <class T, std::size_t N>
auto members(const char* rule, const py::dict& values, const py::tuple& names) {
  std::array<T, N> found;
  for (std::size_t i = 0; i < N; ++i) {
    PyObject* const value = PyDict_GetItemWithError(values.ptr(), py::object(names[i]).ptr());
    if (value == nullptr) {
      throw py::attribute_error(std::string(rule) + ": expected " +
                                py::repr(names[i]).cast<std::string>() + ", got " +
                                py::repr(py::list(values)).cast<std::string>());
    }
    if constexpr (std::is_same_v<T, Array>) {
      found[i] = py::handle(value).cast<OutputArray>().array;
    } else {
      found[i] = py::handle(value).cast<T>();
    }
  }
  return found;
}

// The array of a variable, to be changed in place. What Python has not seen becomes no ndarray.
Array changed_array(VariableBody& x) {
  const Array& known = x.metadata();
  if (x.host_view || !known.device().is_host() || known.dtype() == Dtype::bfloat16) {
    return python_array(x).cast<OutputArray>().array;
  }
  return x.writable_array();
}

// Binds every listed rule.
struct RuleBinder {
  py::module_& rules;
  py::object entry;  // the type of `entries`
  py::dict entries;
  RuleIndex next = 0;

  template <template <class> class Functor, std::size_t kStates, std::size_t kOptions,
            std::size_t kSources>
  void operator()(const UpdateRule<Functor, kStates, kOptions, kSources>& rule) {
    const py::tuple state_names = py::cast(rule.states);
    py::tuple option_names(kOptions);
    for (std::size_t i = 0; i < kOptions; ++i) option_names[i] = rule.options[i].name;
    py::dict defaults;
    for (const std::span<const Option> each :
         {std::span<const Option>(rule.options), {rule.sources}}) {
      for (const auto& [option, value] : each) {
        if (!std::isnan(value)) defaults[option] = value;
      }
    }
    const auto call = [=, index = next, name = rule.name](
                          const OutputArray& x, const Gradient& grad, const py::dict& states,
                          const py::dict& options) {
      update(index, x.array, grad, members<Array, kStates>(name, states, state_names),
             members<double, kOptions>(name, options, option_names));
    };
    rules.def(rule.name, call, py::arg("x"), py::arg("grad"), py::arg("states"), py::arg("options"),
              rule.formula);
    const auto call_all = [=, index = next++, name = rule.name](
                              const py::list& params, const py::list& states,
                              const py::dict& options, double scale, double decay) {
      const auto values = members<double, kOptions>(name, options, option_names);
      std::vector<std::array<Array, kStates>> all_states;
      std::vector<std::pair<Array, Gradient>> arrays;
      all_states.reserve(params.size());
      arrays.reserve(params.size());
      std::vector<UpdateCall> calls;
      for (std::size_t i = 0; i < params.size(); ++i) {
        VariableBody& x = *variable_body(py::handle(params[i]));
        if (!x.grad.defined()) continue;
        arrays.emplace_back(changed_array(x),
                            Gradient(changed_array(*x.grad.body()), scale, decay));
        all_states.push_back(
            members<Array, kStates>(name, states[i].cast<py::dict>(), state_names));
        calls.push_back(
            {arrays.back().first, arrays.back().second, all_states.back().data(), values.data()});
      }
      renga::update_all(index, calls, kStates, kOptions);
    };
    const std::string all = std::string(rule.name) + "_all";
    rules.def(all.c_str(), call_all, py::arg("params"), py::arg("states"), py::arg("options"),
              py::arg("scale"), py::arg("decay"),
              "The same for each of several Variables that have a gradient and its states; the "
              "gradient becomes ``scale g + decay x`` first.");
    entries[rule.name] = entry(rules.attr(rule.name), rules.attr(all.c_str()), state_names,
                               option_names, defaults, rule.formula);
  }
};

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

std::optional<std::vector<double>> squared_gradients(const py::list& params) {
  std::vector<double> squares;
  for (const py::handle param : params) {
    const VariableBody& x = *variable_body(param);
    if (!x.grad.defined()) continue;
    const Array& grad = x.grad.array();
    if (!grad.device().is_host()) return std::nullopt;
    const double scale = x.pass ? x.pass->loss_scale.value_or(1) : 1;
    squares.push_back(squared_norm(grad) / (scale * scale));
  }
  return squares;
}

void bind_prediction(py::module_& rules) {
  py::class_<ScaledStep>(rules, "ScaledStep", "The step ``x += scale d``.")
      .def(py::init<Array, double>(), py::arg("d"), py::arg("scale"));
  py::class_<AdamMoments>(rules, "AdamMoments", "The step of ``adam`` from these moments.")
      .def(py::init([names = py::tuple(rules.attr("entries")["adam"].attr("options"))](
                        const Array& m, const Array& v, const py::dict& options) {
             return AdamMoments{m, v, members<double, 8>("adam", options, names)};
           }),
           py::arg("m"), py::arg("v"), py::arg("options"));
  rules.def("predict", &predict_all, py::arg("predictions"), py::arg("steps"),
            "``x + steps · step(x)`` for each (out or None, parameter x, float32 values of x or "
            "None, step or None), in the outs or in new arrays.");
}

}  // namespace

void bind_optimizers(py::module_& m) {
  py::module_ rules = m.def_submodule("optimizers", "Update rules, in place on ndarrays.");
  const py::object entry =
      py::module_::import("collections")
          .attr("namedtuple")("UpdateRule", "update update_all states options defaults formula");
  RuleBinder binder{rules, entry, py::dict()};
  list_update_rules(binder);
  rules.attr("entries") = binder.entries;
  py::class_<Update>(rules, "Update", "A deferred call of a rule.")
      .def_property_readonly(
          "address",
          [](const Update& update) { return reinterpret_cast<std::uintptr_t>(update.x.data()); },
          "Where the numbers are that it updates.");
  rules.def(
      "apply",
      [](const std::vector<Update>& updates) {
        const GilRelease lend;
        for (const Update& made : updates) made.apply(made.x, made.g, made.states.data());
      },
      py::arg("updates"), "Makes deferred calls of rules.");
  rules.def(
      "deferred_updates",
      [](const py::function& body) { return deferred_updates([&] { body(); }); }, py::arg("body"),
      "The calls of rules that `body()` makes in this thread, deferred.");
  rules.def(
      "update_together", [](const py::function& body) { update_together([&] { body(); }); },
      py::arg("body"), "Calls `body()`, whose calls of rules take effect together at its end.");
  rules.def("add_scaled", [](const OutputArray& y, const Array& x, double scale) {
    add_scaled(y.array, x, scale);
  });
  rules.def("squared_norm", &squared_norm, py::arg("x"), "The sum of the squares of an ndarray.");
  rules.def("squared_gradients", &squared_gradients, py::arg("params"),
            "The sum of the squares of each gradient that Variables have, without its loss scale; "
            "None if one is not on the host.");
  rules.def(
      "without_gradient",
      [](const py::list& params) {
        py::list found;
        for (const py::handle param : params) {
          const VariableBody& x = *variable_body(param);
          if (x.metadata().defined() && !x.grad.defined()) found.append(param);
        }
        return found;
      },
      py::arg("params"), "Those of the Variables that have an array, but no gradient.");
  bind_joint_updates(rules);
  bind_prediction(rules);
}

}  // namespace renga::python
