#include <pybind11/stl.h>

#include "devices/allocator.h"
#include "devices/meta.h"
#include "python/interpreter.h"
#include "python/variable.h"
#include "tensor/extents.h"

namespace renga::python {

namespace {

// Elements that are on their way into an array; a function of Python waits for them.
class Arrival final : public Deferred {
 public:
  explicit Arrival(py::function wait) : Deferred(Array(), {}), wait_(std::move(wait)) {}
  ~Arrival() override { python::release(wait_.release().ptr()); }

 private:
  void compute(const Array&) const override {
    const GilAcquire lock;
    wait_();
  }

  py::function wait_;
};

void await(const py::list& variables, const py::function& wait) {
  const auto arrival = make_ref<Arrival>(wait);
  for (const py::handle variable : variables) {
    auto& body = variable.cast<VariableBody&>();
    body.writable_array();
    body.defer(arrival);
  }
}

// The same elements in a storage of their own, which keeps the one of `x`.
Array own_view(const Array& x) {
  const auto bytes = static_cast<std::size_t>(x.size() * x.itemsize());
  auto storage = make_ref<Storage>(x.data(), bytes, x.device(), [whole = x.storage()] {});
  return {std::move(storage), x.data(), x.shape(), x.strides(), x.dtype()};
}

}  // namespace

void bind_memory(py::module_& m) {
  m.def(
      "memory_stats",
      [](const std::string& device) {
        const MemoryStats s = memory_stats(device_from_string(device));
        py::dict d;
        d["in_use"] = s.in_use;
        d["peak"] = s.peak;
        d["cached"] = s.cached;
        d["allocations"] = s.allocations;
        d["hits"] = s.hits;
        d["reserves"] = s.reserves;
        return d;
      },
      py::arg("device"));
  m.def(
      "empty_cache", [](const std::string& device) { empty_cache(device_from_string(device)); },
      py::arg("device"));
  m.def(
      "empty",
      [](const Shape& shape, Dtype dtype, const std::string& device) {
        return empty(shape, dtype, device_from_string(device));
      },
      py::arg("shape"), py::arg("dtype"), py::arg("device") = to_string(Device{}),
      "An array in memory of the core's allocator.");
  m.def(
      "require_memory",
      [](const char* op, const Shape& shape, Dtype dtype) { require_memory(op, shape, dtype); },
      py::arg("op"), py::arg("shape"), py::arg("dtype"),
      "Raises ValueError for a negative extent, MemoryError where an array would not fit.");
  m.def(
      "require_writable",
      [](py::handle array, const std::string& what) { writable_array(array, what.c_str()); },
      py::arg("array"), py::arg("what"),
      "Raises ValueError unless the core can write into the memory of an ndarray.");
  m.def("await_arrays", &await, py::arg("variables"), py::arg("wait"),
        "Has whatever reads the arrays of Variables call `wait()` before, once for all of them: "
        "elements are being written to their memory until it returns.");
  m.def("own_view", &own_view, py::arg("x"),
        "A contiguous ndarray over the memory of another one. References to it and to views of it "
        "are told from those to other parts of the memory (Variable.owns_array).");
  m.def("host_name", [] { return to_string(Device{}); });
  m.def(
      "device_names",
      [] {
        std::vector<std::string> names;
        for (std::size_t i = 0; i < drivers().size(); ++i) {
          const Driver& driver = *drivers()[i];
          if (i != kMeta.driver && driver.count() > 0) names.push_back(driver.name());
        }
        return names;
      },
      "The kinds of devices with memory, of which there is one at least.");
}

}  // namespace renga::python
