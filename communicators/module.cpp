// The Python binding. The public interface is written in Python on top of it.
#include "data_parallel/module.h"

#include <pthread.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <map>
#include <tuple>

#include "autograd/node.h"
#include "collectives/flat_bucket.h"
#include "collectives/partition.h"
#include "communicator.h"
#include "devices/gil_release.h"
#include "python/array.h"
#include "python/interpreter.h"
#include "simulated/double_tree.h"
#include "transport/local/local_transport.h"

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

ReduceOp reduction_of(py::handle op) {
  Py_ssize_t length = 0;
  const char* const name =
      PyUnicode_Check(op.ptr()) ? PyUnicode_AsUTF8AndSize(op.ptr(), &length) : nullptr;
  if (name == nullptr) {
    PyErr_Clear();  // of text that is not Unicode
    throw py::type_error("all_reduce: expected op sum, mean, max, min or prod, got " +
                         py::repr(op).cast<std::string>());
  }
  return reduction_from_string({name, static_cast<std::size_t>(length)});
}

// The path with the least overhead. Returns false and does nothing unless `x` is a plain
// numpy.ndarray of native dtype.
bool all_reduce_in_place(Communicator& self, py::handle x, py::handle op) {
  const auto dtype = python::plain_dtype(x);
  if (!dtype) return false;
  const auto* array = py::detail::array_proxy(x.ptr());
  const Shape shape(std::span(array->dimensions, static_cast<std::size_t>(array->nd)));
  const ReduceOp reduction = reduction_of(op);
  const LaunchOptions options = launch_options(self, true);
  auto* data = reinterpret_cast<std::byte*>(array->data);
  if (!self.all_reduce_small(data, shape, *dtype, reduction, options)) {
    const std::vector<Array> xs{python::from_numpy(x)};
    self.call(collective_named("all_reduce"), "all_reduce", {xs, xs, reduction}, options);
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

// None stands for an array without elements.
Array operand(py::handle x, const char* called) {
  if (x.is_none()) return {};
  if (python::is_ndarray(x)) return python::from_numpy(x, called);
  py::detail::make_caster<Array> array;
  if (!array.load(x, true)) {
    throw py::type_error(std::string(called) + ": expected an array, got " +
                         py::str(py::type::of(x)).cast<std::string>());
  }
  return py::detail::cast_op<Array>(std::move(array));
}

// A rank's arguments as Python passes them.
Arguments arguments_of(const char* called, const py::sequence& xs, const py::sequence& ys,
                       py::handle op, const std::string& communication_dtype,
                       std::optional<std::int64_t> root) {
  const std::string what = root ? called : std::string(called) + ": out";
  Arguments arguments{{}, {}, reduction_of(op), floating_dtype(communication_dtype), root};
  arguments.xs.reserve(xs.size());
  arguments.ys.reserve(ys.size());
  for (const py::object x : xs) arguments.xs.push_back(operand(x, called));
  for (const py::object y : ys) {
    arguments.ys.push_back(y.is_none() ? Array() : python::writable_array(y, what.c_str()));
  }
  return arguments;
}

void bind_collectives(py::module_& m, py::class_<Communicator, std::shared_ptr<Communicator>>& c) {
  c.def(
      "call",
      [](Communicator& self, const char* collective, const py::sequence& xs, const py::sequence& ys,
         py::handle op, const std::string& communication_dtype, std::optional<std::int64_t> root,
         bool wait, const char* called) {
        const char* const name = *called ? called : collective;
        Arguments arguments = arguments_of(name, xs, ys, op, communication_dtype, root);
        // In the background, kept until here so that the thread seldom has to wait for the GIL to
        // give back the memory of a short collective's arrays.
        return self.call(collective_named(collective), name,
                         wait ? std::move(arguments) : arguments, launch_options(self, wait));
      },
      py::arg("collective"), py::arg("xs"), py::arg("ys"), py::arg("op") = "sum",
      py::arg("communication_dtype") = "", py::arg("root") = py::none(), py::arg("wait") = true,
      py::arg("called") = "",
      "Runs a collective of the table. None stands for an array without elements; `called` is the "
      "method that is made of it.");
  m.def(
      "collectives",
      [] {
        std::vector<std::string> names;
        for (const Collective& row : all_collectives()) names.emplace_back(row.name);
        return names;
      },
      "The names of the table.");
  m.def(
      "check_call",
      [](const char* collective, const py::sequence& xs, const py::sequence& ys, py::handle op,
         const std::string& communication_dtype, std::optional<std::int64_t> root,
         const char* called, int rank, int size) {
        Arguments arguments = arguments_of(called, xs, ys, op, communication_dtype, root);
        Topology topology;
        topology.rank = rank;
        topology.size = size;
        return collective_named(collective).check(called, arguments, topology).text();
      },
      py::arg("collective"), py::arg("xs"), py::arg("ys"), py::arg("op"),
      py::arg("communication_dtype"), py::arg("root"), py::arg("called"), py::arg("rank"),
      py::arg("size"), "Checks the arguments; the description that ranks compare.");
  c.def(
      "connect_devices",
      [](Communicator& self, const py::bytes& id, const std::string& device) {
        const std::string_view bytes = id;
        self.connect_devices(std::as_bytes(std::span(bytes)), device_from_string(device));
      },
      py::arg("id"), py::arg("device"),
      "Connects the ranks' devices by an id of NCCL's; else their first collective does.");
  c.def("all_reduce_in_place", &all_reduce_in_place, py::arg("x"), py::arg("op"));
  c.def("barrier", [](Communicator& self) { self.barrier(launch_options(self, true)); });
}

using Arrays = std::vector<Array>;

Arrays contiguous_arrays(const Arrays& xs) {
  Arrays result;
  for (const Array& x : xs) result.push_back(contiguous(x));
  return result;
}

// Reduces one operand per rank, in rank order. Each is a list of arrays.
void reduce_operands(const std::vector<Arrays>& operands, const Arrays& results, ReduceOp reduction,
                     std::optional<Dtype> communication_dtype) {
  constexpr std::int64_t chunk_bytes = std::int64_t{1} << 16;
  const GilRelease lend;
  const Dtype dtype = communication_dtype.value_or(results.at(0).dtype());
  std::vector<Arrays> inputs;  // the buckets refer to them
  std::vector<FlatBucket> xs;
  for (const Arrays& operand : operands) {
    inputs.push_back(contiguous_arrays(operand));
    xs.emplace_back(inputs.back(), dtype);
  }
  const FlatBucket y(results, dtype);
  std::vector<std::byte> memory((xs.size() + 1) * chunk_bytes);
  std::vector<const std::byte*> chunks;
  for (std::size_t r = 0; r < xs.size(); ++r) chunks.push_back(&memory[r * chunk_bytes]);
  std::byte* const result = &memory[xs.size() * chunk_bytes];
  for_each_chunk(y.bytes(), chunk_bytes, [&](std::int64_t begin, std::int64_t length) {
    for (std::size_t r = 0; r < xs.size(); ++r) {
      xs[r].read(begin, length, &memory[r * chunk_bytes]);
    }
    reduce(reduction, dtype, chunks, result, length / size_of(dtype));
    y.write(begin, length, result);
  });
}

// The bytes of a contiguous array as an ndarray in its memory.
py::object bytes_of(const Array& x) {
  const Shape bytes{x.size() * x.itemsize()};
  return python::to_numpy(Array(x.storage(), x.data(), bytes, Strides{1}, Dtype::uint8));
}

// Binds what simulated ranks share with the compiled communicator.
void bind_simulated(py::module_& m) {
  m.def(
      "check_algorithm", [](const std::string& name) { all_reduce::algorithm_from_string(name); },
      py::arg("name"));
  m.def("call_site", &describe_call_site);
  m.def(
      "sent_bytes", [](const Array& x) { return bytes_of(contiguous(x)); }, py::arg("x"),
      "The bytes that a message has: those of x, or of a copy if it is not contiguous.");
  m.def(
      "received_bytes",
      [](py::handle x) {
        const Array y = python::writable_array(x, "recv: out");
        require(y.is_contiguous(), "recv: expected a contiguous result, got strides ", y.strides());
        return bytes_of(y);
      },
      py::arg("x"), "Where the bytes of a message are written.");
  m.def(
      "reduce",
      [](const std::vector<Arrays>& operands, const py::iterable& results, const std::string& op,
         const std::string& communication_dtype) {
        reduce_operands(operands, python::writable_arrays(results, "reduce"),
                        reduction_from_string(op), floating_dtype(communication_dtype));
      },
      py::arg("operands"), py::arg("results"), py::arg("op"), py::arg("communication_dtype"),
      "Reduces one list of arrays per rank, in rank order.");
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
  c.def("network", [](Communicator& self) {
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
  m.def(
      "double_tree_seconds",
      [](const std::vector<std::tuple<int, double, double, int>>& levels, double chunk_bytes,
         int chunks, int slots) {
        std::vector<simulated::Level> found;
        for (const auto& [size, bandwidth, latency, links] : levels) {
          found.push_back({size, bandwidth, latency, links});
        }
        return simulated::double_tree_seconds(found, chunk_bytes, chunks, slots);
      },
      py::arg("levels"), py::arg("chunk_bytes"), py::arg("chunks"), py::arg("slots"),
      "The time of two trees with levels of (size, bandwidth, latency, links).");
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
  bind_collectives(m, c);
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
