// The binding of communicators. What is friendly to people is Python, on top of this.
#include <pthread.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <map>

#include "autograd/node.h"
#include "communicator.h"
#include "local/local_transport.h"
#include "python/array.h"

namespace py = pybind11;

namespace {

using namespace renga;

void translate(std::exception_ptr error) {
  try {
    if (error) std::rethrow_exception(error);
  } catch (const TimeOut& e) {
    PyErr_SetString(PyExc_TimeoutError, e.what());
  } catch (const RankFailed& e) {
    py::set_error(py::module_::import("renga.communicators.failure").attr("RankFailed"), e.what());
  }
}

void run_signal_handlers() {
  const py::gil_scoped_acquire lock;
  if (PyErr_CheckSignals() != 0) throw py::error_already_set();
}

std::string describe_site() {
  const py::gil_scoped_acquire lock;
  const auto site = find_call_site != nullptr ? find_call_site() : nullptr;
  return site ? site->describe() : "";
}

Issue issue(const Communicator& self, bool wait) {
  return {wait, !wait || self.shows_sites() ? describe_site() : ""};
}

// Where results go: what cannot be written into is refused before anything is moved.
std::vector<Array> writable_arrays(const py::iterable& ys, const char* what) {
  std::vector<Array> result;
  for (const py::handle y : ys) result.push_back(python::writable_array(y, what));
  return result;
}

// None for "". NumPy has no bfloat16, so dtypes come by name.
std::optional<Dtype> floating_dtype(const std::string& name) {
  if (name.empty()) return {};
  for (const Dtype dtype : {Dtype::float16, Dtype::bfloat16, Dtype::float32, Dtype::float64}) {
    if (name == name_of(dtype)) return dtype;
  }
  fail<std::invalid_argument>("all_reduce: expected a floating dtype to travel as, got ", name);
}

// The shortest way from Python. False, and nothing is done, where `x` is not an ordinary array.
bool all_reduce_in_place(Communicator& self, py::handle x, const std::string& op) {
  const auto dtype = python::plain_dtype(x);
  if (!dtype) return false;
  const auto* array = py::detail::array_proxy(x.ptr());
  const Shape shape(std::span(array->dimensions, static_cast<std::size_t>(array->nd)));
  const Reduction reduction = reduction_from_string(op);
  const Issue here = issue(self, true);
  auto* data = reinterpret_cast<std::byte*>(array->data);
  if (!self.all_reduce_short(data, shape, *dtype, reduction, here)) {
    const std::vector<Array> xs{python::from_numpy(x)};
    self.all_reduce(xs, xs, reduction, {}, here);
  }
  return true;
}

void bind_transports(py::module_& m) {
  py::class_<Transport, std::shared_ptr<Transport>>(m, "Transport");
  py::class_<Failure, std::shared_ptr<Failure>>(m, "Failure")
      .def(py::init<>())
      .def("set", &Failure::set, py::arg("what"));
  py::class_<Hub, std::shared_ptr<Hub>>(m, "Hub")
      .def(py::init<std::vector<int>, bool, std::shared_ptr<Failure>>(), py::arg("nodes"),
           py::arg("with_boards"), py::arg("failure"))
      .def(
          "transport",
          [](const std::shared_ptr<Hub>& hub, int rank) -> std::shared_ptr<Transport> {
            return std::make_shared<LocalTransport>(hub, rank);
          },
          py::arg("rank"));
}

void bind_work(py::module_& m) {
  py::class_<Work, std::shared_ptr<Work>>(m, "Work")
      .def("test", &Work::test)
      .def("wait", &Work::wait, py::arg("seconds"))
      .def("is_over", &Work::is_over);
}

void bind_placement(py::class_<Communicator, std::shared_ptr<Communicator>>& c) {
  const auto add = [&c](const char* name, int Placement::*member) {
    c.def_property_readonly(
        name, [member](const Communicator& self) { return self.placement().*member; });
  };
  add("rank", &Placement::rank);
  add("size", &Placement::size);
  add("intra_rank", &Placement::intra_rank);
  add("intra_size", &Placement::intra_size);
  add("inter_rank", &Placement::inter_rank);
  add("inter_size", &Placement::inter_size);
}

void bind_collectives(py::class_<Communicator, std::shared_ptr<Communicator>>& c) {
  using Arrays = std::vector<Array>;
  c.def(
      "all_reduce",
      [](Communicator& self, const Arrays& xs, const py::iterable& ys, const std::string& op,
         const std::string& wire, bool wait) {
        return self.all_reduce(xs, writable_arrays(ys, "all_reduce: out"),
                               reduction_from_string(op), floating_dtype(wire), issue(self, wait));
      },
      py::arg("xs"), py::arg("ys"), py::arg("op"), py::arg("wire") = "", py::arg("wait") = true);
  c.def("all_reduce_in_place", &all_reduce_in_place, py::arg("x"), py::arg("op"));
  c.def(
      "update",
      [](Communicator& self, const std::vector<Update>& updates) {
        self.update(updates, issue(self, true));
      },
      py::arg("updates"));
  c.def(
      "reduce_scatter",
      [](Communicator& self, const Array& x, py::handle y, const std::string& op, bool wait) {
        return self.reduce_scatter(x, python::writable_array(y, "reduce_scatter: out"),
                                   reduction_from_string(op), issue(self, wait));
      },
      py::arg("x"), py::arg("y"), py::arg("op"), py::arg("wait") = true);
  c.def(
      "all_gather",
      [](Communicator& self, const Array& x, py::handle y, bool wait) {
        return self.all_gather(x, python::writable_array(y, "all_gather: out"), issue(self, wait));
      },
      py::arg("x"), py::arg("y"), py::arg("wait") = true);
  c.def(
      "all_to_all",
      [](Communicator& self, const Array& x, py::handle y, bool wait) {
        return self.all_to_all(x, python::writable_array(y, "all_to_all: out"), issue(self, wait));
      },
      py::arg("x"), py::arg("y"), py::arg("wait") = true);
  c.def(
      "broadcast",
      [](Communicator& self, py::handle x, std::int64_t root, bool wait, const char* name) {
        // The root's is only read.
        const Array given = root == self.rank() ? x.cast<Array>() : python::writable_array(x, name);
        return self.broadcast(name, given, root, issue(self, wait));
      },
      py::arg("x"), py::arg("root"), py::arg("wait") = true, py::arg("name") = "broadcast");
  c.def("barrier", [](Communicator& self) { self.barrier(issue(self, true)); });
}

// Of what ranks bring in shapes of their own, or not at all.
void bind_uneven(py::class_<Communicator, std::shared_ptr<Communicator>>& c) {
  using Arrays = std::vector<Array>;
  c.def(
      "gather_parts",
      [](Communicator& self, const char* name, const Array& x, const py::iterable& ys) {
        self.gather_parts(name, x, writable_arrays(ys, name), issue(self, true));
      },
      py::arg("name"), py::arg("x"), py::arg("ys"));
  c.def(
      "exchange",
      [](Communicator& self, const char* name, std::optional<std::int64_t> root,
         const std::vector<std::optional<Array>>& sent, const py::iterable& received) {
        Arrays from, to;
        for (const auto& x : sent) from.push_back(x.value_or(Array()));
        for (const py::handle y : received) {
          to.push_back(y.is_none() ? Array() : python::writable_array(y, name));
        }
        self.exchange(name, root, from, to, issue(self, true));
      },
      py::arg("name"), py::arg("root"), py::arg("sent"), py::arg("received"));
}

void bind_messages(py::class_<Communicator, std::shared_ptr<Communicator>>& c) {
  using Arrays = std::vector<Array>;
  c.def(
      "send",
      [](Communicator& self, const Arrays& xs, std::int64_t to, std::int64_t tag, bool wait) {
        return self.send(xs, to, tag, issue(self, wait));
      },
      py::arg("xs"), py::arg("to"), py::arg("tag"), py::arg("wait") = true);
  c.def(
      "receive",
      [](Communicator& self, const py::iterable& xs, std::int64_t source, std::int64_t tag,
         bool wait) {
        return self.receive(writable_arrays(xs, "recv: out"), source, tag, issue(self, wait));
      },
      py::arg("xs"), py::arg("source"), py::arg("tag"), py::arg("wait") = true);
}

// How reductions go by messages: the algorithms, and the network by which one is chosen.
void bind_choice(py::module_& m, py::class_<Communicator, std::shared_ptr<Communicator>>& c) {
  c.def(
      "set_algorithm",
      [](Communicator& self, const std::string& name) {
        self.set_algorithm(all_reduce::algorithm_from_string(name));
      },
      py::arg("name"));
  c.def("measure_network", [](Communicator& self) {
    const all_reduce::Network network = self.measure_network(issue(self, true));
    return std::pair(network.latency, network.seconds_per_byte);
  });
  c.def_property_readonly("shares_memory", [](const Communicator& self) {
    return self.transport()->board() != nullptr;
  });
  m.def(
      "all_reduce_seconds",
      [](int ranks, std::int64_t bytes, bool halves, double latency, double seconds_per_byte) {
        std::map<std::string, double> result;
        for (int i = 0; i < all_reduce::kAlgorithms; ++i) {
          const auto algorithm = static_cast<all_reduce::Algorithm>(i);
          result[all_reduce::name_of(algorithm)] =
              all_reduce::seconds(algorithm, ranks, bytes, halves, {latency, seconds_per_byte});
        }
        return result;
      },
      py::arg("ranks"), py::arg("bytes"), py::arg("halves"), py::arg("latency"),
      py::arg("seconds_per_byte"), "What each algorithm takes, by the model.");
}

}  // namespace

PYBIND11_MODULE(_communicators, m) {
  m.doc() = "Communication between ranks: transports, collectives and messages.";
  py::module_::import("renga._core");
  py::register_exception_translator(&translate);
  check_signals = &run_signal_handlers;
  pthread_atfork(nullptr, nullptr, [] { ++forks; });
  current_site = &describe_site;
  bind_transports(m);
  bind_work(m);
  py::class_<Communicator, std::shared_ptr<Communicator>> c(m, "Communicator");
  c.def(py::init<std::shared_ptr<Transport>, double, bool>(), py::arg("transport"),
        py::arg("seconds"), py::arg("debug"));
  bind_placement(c);
  bind_collectives(c);
  bind_uneven(c);
  bind_messages(c);
  c.def(
      "split",
      [](Communicator& self, std::optional<int> color, int key) {
        return self.split(color, key, issue(self, true));
      },
      py::arg("color"), py::arg("key"));
  c.def(
      "window",
      [](Communicator& self, std::int64_t bytes) { return self.window(bytes, issue(self, true)); },
      py::arg("bytes"));
  c.def(
      "place",
      [](Communicator& self, const std::vector<Array>& xs) {
        return self.place(xs, issue(self, true));
      },
      py::arg("xs"));
  c.def("places", &Communicator::places, py::arg("xs"));
  bind_choice(m, c);
  c.def("abort", &Communicator::abort, py::arg("code"));
  c.def_property_readonly("transport", &Communicator::transport);
}
