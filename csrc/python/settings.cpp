#include "settings/settings.h"

#include <pybind11/stl.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string_view>

#include "python/variable.h"

namespace renga::python {
namespace {

constexpr std::array<const char*, 3> kPrecisions{"highest", "high", "medium"};

// Every setting by its name in Python.
template <class Visit>
void list_settings(const Visit& visit) {
  visit("enable_backprop", &Settings::backprop);
  visit("compute_precision", &Settings::precision);
  visit("bfloat16_activations", &Settings::bfloat16_activations);
  visit("in_recomputing", &Settings::recomputing);
  visit("cudnn", &Settings::cudnn);
  visit("cudnn_deterministic", &Settings::deterministic);
  visit("autotune", &Settings::autotune);
  visit("training", &Settings::training);
}

struct ProcessSettings {
  template <class T>
  static T get(Choice<T> Settings::*setting) {
    return *(default_settings.*setting).get();
  }
  template <class T>
  static void set(Choice<T> Settings::*setting, T value) {
    (default_settings.*setting).set(value);
  }
};

// None where the thread follows the process's.
struct ThreadSettings {
  template <class T>
  static std::optional<T> get(Choice<T> Settings::*setting) {
    return (thread_settings.*setting).get();
  }
  template <class T>
  static void set(Choice<T> Settings::*setting, std::optional<T> value) {
    (thread_settings.*setting).set(value);
  }
};

template <class View>
void bind_view(py::class_<View>& view) {
  list_settings([&view]<class T>(const char* name, Choice<T> Settings::*setting) {
    using Value = decltype(View::get(setting));
    view.def_property(
        name, [setting](const View&) { return View::get(setting); },
        [setting](const View&, Value value) { View::set(setting, value); });
  });
}

}  // namespace
}  // namespace renga::python

namespace pybind11::detail {

// A precision by its name.
template <>
struct type_caster<renga::Precision> {
  PYBIND11_TYPE_CASTER(renga::Precision, const_name("str"));

  bool load(handle source, bool) {
    if (!isinstance<str>(source)) return false;
    const auto name = source.cast<std::string>();
    const auto& names = renga::python::kPrecisions;
    const auto found = std::find(names.begin(), names.end(), std::string_view(name));
    if (found == names.end()) {
      throw std::invalid_argument("compute_precision: expected highest, high or medium, got " +
                                  name);
    }
    value = static_cast<renga::Precision>(found - names.begin());
    return true;
  }
  static handle cast(renga::Precision precision, return_value_policy, handle) {
    return PyUnicode_InternFromString(
        renga::python::kPrecisions[static_cast<std::size_t>(precision)]);
  }
};

}  // namespace pybind11::detail

namespace renga::python {

void bind_settings(py::module_& m) {
  py::class_<ProcessSettings> process(m, "ProcessSettings", "The core's settings of all threads.");
  bind_view(process);
  process.def_property(
      "cudnn_workspace_bytes", [](const ProcessSettings&) { return cudnn_workspace_bytes.load(); },
      [](const ProcessSettings&, std::int64_t bytes) { cudnn_workspace_bytes = bytes; });
  py::class_<ThreadSettings> thread(
      m, "ThreadSettings", "The core's settings of this thread; None where it has not its own.");
  bind_view(thread);
  m.attr("process_settings") = ProcessSettings();
  m.attr("thread_settings") = ThreadSettings();
  m.def("backprop_enabled", &backprop_enabled, "Whether this thread records operations.");
}

}  // namespace renga::python
