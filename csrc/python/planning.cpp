// Binds the simulator of parallel strategies.
#include "python/planning.h"

#include <pybind11/stl.h>

#include "devices/gil_release.h"
#include "planning/simulator.h"

namespace renga::python {

namespace py = pybind11;

namespace {

using namespace planning;

void bind_operations(py::module_& m) {
  const auto axis =
      py::class_<InputAxis>(m, "InputAxis", "Which elements of an input's axis are read.")
          .def(
              py::init<int, std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t>(),
              py::arg("source") = InputAxis::kWhole, py::arg("stride") = 1, py::arg("pad") = 0,
              py::arg("reach") = 1, py::arg("offset") = 0, py::arg("divide") = 1)
          .def_readonly("source", &InputAxis::source)
          .def_readonly("offset", &InputAxis::offset);
  axis.attr("WHOLE") = InputAxis::kWhole;
  axis.attr("REDUCTION") = InputAxis::kReduction;
  py::class_<Input>(m, "Input", "What an operation reads of another's output.")
      .def(py::init<int, std::vector<std::int64_t>, std::vector<InputAxis>, bool>(),
           py::arg("producer"), py::arg("extents"), py::arg("axes"), py::arg("has_gradient") = true)
      .def_readonly("producer", &Input::producer)
      .def_readonly("extents", &Input::extents)
      .def_readonly("axes", &Input::axes);
  py::class_<planning::Operation>(m, "Operation", "The extents of an operation.")
      .def(py::init<std::vector<std::int64_t>, std::int64_t, std::int64_t, std::vector<bool>,
                    std::vector<Input>>(),
           py::arg("extents"), py::arg("reduction"), py::arg("itemsize"), py::arg("is_parameter"),
           py::arg("inputs"));
  py::class_<Configuration>(m, "Configuration", "Into which tasks an operation is split.")
      .def(py::init<std::vector<int>, int, int, std::vector<int>, double, double, double, double>(),
           py::arg("degrees"), py::arg("reduction"), py::arg("replicas"), py::arg("devices"),
           py::arg("forward"), py::arg("backward"), py::arg("sync"), py::arg("update"));
  py::class_<Topology>(m, "Topology", "Devices and the network between them.")
      .def(py::init<int, int, double, double, double, double, bool>(), py::arg("devices"),
           py::arg("devices_per_node"), py::arg("latency"), py::arg("seconds_per_byte"),
           py::arg("node_latency"), py::arg("node_seconds_per_byte"), py::arg("overlaps"));
}

py::list tasks_of(const Simulator& simulator) {
  constexpr const char* kKinds[] = {"forward",       "send", "backward",
                                    "send gradient", "sync", "update"};
  py::list found;
  for (const Simulator::Span& span : simulator.timeline()) {
    const Key& key = simulator.graph().tasks()[span.task].key;
    const char* kind = kKinds[static_cast<int>(key.kind)];
    found.append(py::make_tuple(kind, key.operation, span.resource, span.start, span.end));
  }
  return found;
}

}  // namespace

void bind_planning(py::module_& core) {
  py::module_ m = core.def_submodule("planning", "The simulator of parallel strategies.");
  bind_operations(m);
  py::class_<Simulator>(m, "Simulator", "Predicts the seconds of a training step.")
      .def(py::init<Topology>(), py::arg("topology"))
      .def("add_operation", &Simulator::add_operation, py::arg("operation"),
           py::arg("configuration"))
      .def("configure", &Simulator::configure, py::arg("operation"), py::arg("configuration"),
           "Replaces the tasks of one operation.")
      .def("seconds", &Simulator::seconds, py::call_guard<GilRelease>(),
           "The seconds of a step; simulates again what can have changed.")
      .def("full_seconds", &Simulator::full_seconds, py::call_guard<GilRelease>(),
           "The same number from a new task graph.")
      .def("busy", &Simulator::busy, "Seconds for which each resource ran tasks.")
      .def("tasks", &tasks_of, "(kind, operation, resource, start, end) of each task.")
      .def_property_readonly(
          "task_count", [](const Simulator& s) { return s.graph().size(); },
          "Of the last simulation; messages count.")
      .def_property_readonly(
          "bytes_sent", [](const Simulator& s) { return s.graph().bytes_sent(); },
          "In the last simulation, of activations and their gradients.");
}

}  // namespace renga::python
