// The Python binding. The public interface is written in Python on top of it.
#include "data_parallel/module.h"

#include <pthread.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <map>
#include <tuple>

#include "autograd/node.h"
#include "collectives/arguments.h"
#include "communicator.h"
#include "devices/gil_release.h"
#include "python/array.h"
#include "python/interpreter.h"
#include "transport/local/local_transport.h"
#include "transport/simulated/module.h"

namespace py = pybind11;

namespace {

using namespace renga;

// pybind11 passes it by value.
void translate(std::exception_ptr error) {  // NOLINT(performance-unnecessary-value-param)
  try {
    if (error) std::rethrow_exception(error);
  } catch (const TimeoutError& e) {
    PyErr_SetString(PyExc_TimeoutError, e.what());
  } catch (const RankFailed& e) {
    py::set_error(py::module_::import("renga.communicators.failure").attr("RankFailed"), e.what());
  }
}

void run_signal_handlers() {
  const python::GilAcquire lock;
  if (PyErr_CheckSignals() != 0) throw py::error_already_set();
}

std::string describe_call_site() {
  const python::GilAcquire lock;
  const auto site = find_call_site != nullptr ? find_call_site() : nullptr;
  return site ? site->describe() : "";
}

LaunchOptions launch_options(const Communicator& self, bool wait) {
  return {wait, !wait || self.records_call_sites() ? describe_call_site() : ""};
}

// The path with the least overhead. Returns false and does nothing unless `x` is a plain
// numpy.ndarray of native dtype.
bool all_reduce_in_place(Communicator& self, py::handle x, const std::string& op) {
  const auto dtype = python::plain_dtype(x);
  if (!dtype) return false;
  const auto* array = py::detail::array_proxy(x.ptr());
  const Shape shape(std::span(array->dimensions, static_cast<std::size_t>(array->nd)));
  const Reduction reduction = reduction_from_string(op);
  const LaunchOptions options = launch_options(self, true);
  auto* data = reinterpret_cast<std::byte*>(array->data);
  if (!self.all_reduce_small(data, shape, *dtype, reduction, options)) {
    const std::vector<Array> xs{python::from_numpy(x)};
    self.all_reduce(xs, xs, reduction, {}, options);
  }
  return true;
}

void bind_transports(py::module_& m) {
  py::class_<Transport, std::shared_ptr<Transport>>(m, "Transport");
  py::class_<Failure, std::shared_ptr<Failure>>(m, "Failure")
      .def(py::init<>())
      .def("set", &Failure::set, py::arg("message"));
  py::class_<LocalGroup, std::shared_ptr<LocalGroup>>(m, "LocalGroup")
      .def(py::init<std::vector<int>, bool, std::shared_ptr<Failure>>(), py::arg("nodes"),
           py::arg("shared_memory"), py::arg("failure"))
      .def(
          "transport",
          [](const std::shared_ptr<LocalGroup>& group, int rank) -> std::shared_ptr<Transport> {
            return std::make_shared<LocalTransport>(group, rank);
          },
          py::arg("rank"));
}

void bind_work(py::module_& m) {
  py::class_<Work, std::shared_ptr<Work>>(m, "Work")
      .def("test", &Work::test)
      .def("wait", &Work::wait, py::arg("timeout_seconds"))
      .def("is_done", &Work::is_done)
      .def("report", [](Work& work) -> py::object {
        const auto found = work.report();
        if (!found) return py::none();
        return py::make_tuple(found->begin, found->end, found->messages, found->bytes);
      });
}

void bind_topology(py::class_<Communicator, std::shared_ptr<Communicator>>& c) {
  const auto add = [&c](const char* name, int Topology::*member) {
    c.def_property_readonly(name,
                            [member](const Communicator& self) { return self.topology().*member; });
  };
  add("rank", &Topology::rank);
  add("size", &Topology::size);
  add("intra_rank", &Topology::intra_rank);
  add("intra_size", &Topology::intra_size);
  add("inter_rank", &Topology::inter_rank);
  add("inter_size", &Topology::inter_size);
}

void bind_collectives(py::class_<Communicator, std::shared_ptr<Communicator>>& c) {
  using Arrays = std::vector<Array>;
  c.def(
      "all_reduce",
      [](Communicator& self, const Arrays& xs, const py::iterable& ys, const std::string& op,
         const std::string& communication_dtype, bool wait) {
        return self.all_reduce(xs, python::writable_arrays(ys, "all_reduce: out"),
                               reduction_from_string(op), floating_dtype(communication_dtype),
                               launch_options(self, wait));
      },
      py::arg("xs"), py::arg("ys"), py::arg("op"), py::arg("communication_dtype") = "",
      py::arg("wait") = true);
  c.def("all_reduce_in_place", &all_reduce_in_place, py::arg("x"), py::arg("op"));
  c.def(
      "reduce_scatter",
      [](Communicator& self, const Array& x, py::handle y, const std::string& op, bool wait) {
        return self.reduce_scatter(x, python::writable_array(y, "reduce_scatter: out"),
                                   reduction_from_string(op), launch_options(self, wait));
      },
      py::arg("x"), py::arg("y"), py::arg("op"), py::arg("wait") = true);
  c.def(
      "all_gather",
      [](Communicator& self, const Array& x, py::handle y, bool wait) {
        return self.all_gather(x, python::writable_array(y, "all_gather: out"),
                               launch_options(self, wait));
      },
      py::arg("x"), py::arg("y"), py::arg("wait") = true);
  c.def(
      "all_to_all",
      [](Communicator& self, const Array& x, py::handle y, bool wait) {
        return self.all_to_all(x, python::writable_array(y, "all_to_all: out"),
                               launch_options(self, wait));
      },
      py::arg("x"), py::arg("y"), py::arg("wait") = true);
  c.def(
      "broadcast",
      [](Communicator& self, py::handle x, std::int64_t root, bool wait, const char* name) {
        // The root's array is only read.
        const Array array = root == self.rank() ? x.cast<Array>() : python::writable_array(x, name);
        return self.broadcast(name, array, root, launch_options(self, wait));
      },
      py::arg("x"), py::arg("root"), py::arg("wait") = true, py::arg("name") = "broadcast");
  c.def("barrier", [](Communicator& self) { self.barrier(launch_options(self, true)); });
}

// Collectives whose arrays differ in shape between ranks.
void bind_variable_collectives(py::class_<Communicator, std::shared_ptr<Communicator>>& c) {
  using Arrays = std::vector<Array>;
  c.def(
      "all_gatherv",
      [](Communicator& self, const char* name, const Array& x, const py::iterable& ys) {
        self.all_gatherv(name, x, python::writable_arrays(ys, name), launch_options(self, true));
      },
      py::arg("name"), py::arg("x"), py::arg("ys"));
  c.def(
      "all_to_allv",
      [](Communicator& self, const char* name, std::optional<std::int64_t> root,
         const std::vector<std::optional<Array>>& sent, const py::iterable& received) {
        Arrays from, to;
        for (const auto& x : sent) from.push_back(x.value_or(Array()));
        for (const py::handle y : received) {
          to.push_back(y.is_none() ? Array() : python::writable_array(y, name));
        }
        self.all_to_allv(name, root, from, to, launch_options(self, true));
      },
      py::arg("name"), py::arg("root"), py::arg("sent"), py::arg("received"));
}

void bind_messages(py::class_<Communicator, std::shared_ptr<Communicator>>& c) {
  using Arrays = std::vector<Array>;
  c.def(
      "send",
      [](Communicator& self, const Arrays& xs, std::int64_t to, std::int64_t tag, bool wait) {
        return self.send(xs, to, tag, launch_options(self, wait));
      },
      py::arg("xs"), py::arg("to"), py::arg("tag"), py::arg("wait") = true);
  c.def(
      "receive",
      [](Communicator& self, const py::iterable& xs, std::int64_t source, std::int64_t tag,
         bool wait, const std::optional<Array>& expected) {
        return self.receive(python::writable_arrays(xs, "recv: out"), source, tag,
                            launch_options(self, wait), expected);
      },
      py::arg("xs"), py::arg("source"), py::arg("tag"), py::arg("wait") = true,
      py::arg("expected") = py::none());
  c.def(
      "probe",
      [](Communicator& self, std::optional<std::int64_t> source, std::optional<std::int64_t> tag,
         std::optional<double> seconds) -> std::optional<std::pair<int, int>> {
        const auto found = self.probe(source, tag, seconds);
        if (!found) return {};
        return std::pair(found->source, found->tag);
      },
      py::arg("source"), py::arg("tag"), py::arg("seconds"));
}

// Algorithms that reduce by messages, and the model of the network that selects one.
void bind_algorithm_selection(py::module_& m,
                              py::class_<Communicator, std::shared_ptr<Communicator>>& c) {
  c.def(
      "set_algorithm",
      [](Communicator& self, const std::string& name) {
        self.set_algorithm(all_reduce::algorithm_from_string(name));
      },
      py::arg("name"));
  c.def("measure_network", [](Communicator& self) {
    const all_reduce::NetworkModel network = self.measure_network(launch_options(self, true));
    return std::pair(network.latency, network.seconds_per_byte);
  });
  c.def_property_readonly("shares_memory", &Communicator::shares_memory);
  m.def(
      "all_reduce_seconds",
      [](int ranks, std::int64_t bytes, bool is_16_bit, double latency, double seconds_per_byte) {
        std::map<std::string, double> result;
        for (int i = 0; i < all_reduce::kAlgorithms; ++i) {
          const auto algorithm = static_cast<all_reduce::Algorithm>(i);
          result[all_reduce::name_of(algorithm)] = all_reduce::predicted_seconds(
              algorithm, ranks, bytes, is_16_bit, {latency, seconds_per_byte});
        }
        return result;
      },
      py::arg("ranks"), py::arg("bytes"), py::arg("is_16_bit"), py::arg("latency"),
      py::arg("seconds_per_byte"), "The predicted time of each algorithm.");
}

}  // namespace

PYBIND11_MODULE(_communicators, m) {
  m.doc() = "Communication between ranks: transports, collectives and messages.";
  py::module_::import("renga._core");
  py::register_exception_translator(&translate);
  check_signals = &run_signal_handlers;
  pthread_atfork(nullptr, nullptr, [] { ++fork_count; });
  current_call_site = &describe_call_site;
  bind_transports(m);
  bind_work(m);
  py::class_<Communicator, std::shared_ptr<Communicator>> c(m, "Communicator");
  c.def(py::init<std::shared_ptr<Transport>, double, bool>(), py::arg("transport"),
        py::arg("timeout_seconds"), py::arg("debug"), py::call_guard<GilRelease>());
  bind_topology(c);
  bind_collectives(c);
  bind_variable_collectives(c);
  bind_messages(c);
  c.def(
      "split",
      [](Communicator& self, std::optional<int> color, int key) {
        return self.split(color, key, launch_options(self, true));
      },
      py::arg("color"), py::arg("key"));
  c.def(
      "window",
      [](Communicator& self, std::int64_t bytes) {
        return self.window(bytes, launch_options(self, true));
      },
      py::arg("bytes"));
  c.def(
      "copy_to_window",
      [](Communicator& self, const std::vector<Array>& xs) {
        return self.copy_to_window(xs, launch_options(self, true));
      },
      py::arg("xs"));
  c.def(
      "window_of_peer",
      [](Communicator& self, const Array& x, std::int64_t local_rank) {
        return python::to_numpy(self.window_of_peer(x, local_rank));
      },
      py::arg("x"), py::arg("local_rank"));
  c.def(
      "window_layout",
      [](Communicator& self, const std::vector<Array>& xs) { return self.find_windows(xs).layout; },
      py::arg("xs"));
  bind_algorithm_selection(m, c);
  bind_simulated(m);
  bind_data_parallel(m, &launch_options);
  c.def("traffic", [](const Communicator& self) {
    std::map<std::string, std::tuple<std::int64_t, std::int64_t, std::int64_t>> result;
    for (const auto& [name, counts] : self.traffic().counts()) {
      result[name] = {counts.calls, counts.messages, counts.bytes};
    }
    return result;
  });
  c.def("abort", &Communicator::abort, py::arg("code"));
  c.def_property_readonly("transport", &Communicator::transport);
}
