#include "python/calls/operation.h"

#include <pybind11/stl.h>

#include <optional>
#include <string>

namespace renga::python {
namespace {

// None for nullptr.
std::optional<std::string> text_or_none(const char* text) {
  return text != nullptr ? std::optional<std::string>(text) : std::nullopt;
}

}  // namespace

void bind_operation(py::module_& m) {
  py::enum_<Locality>(m, "Locality", "What results are computed from.")
      .value("none", Locality::none)
      .value("pointwise", Locality::pointwise)
      .value("planewise", Locality::planewise)
      .value("channelwise", Locality::channelwise)
      .value("batchwise", Locality::batchwise)
      .value("along_axis", Locality::along_axis);
  py::enum_<Products>(m, "Products", "Which numbers are multiplied and summed.")
      .value("none", Products::none)
      .value("matmul", Products::matmul)
      .value("per_output", Products::per_output)
      .value("per_input", Products::per_input)
      .value("weight_grad", Products::weight_grad)
      .value("attention", Products::attention);
  py::class_<Flops>(m, "Flops", "Floating-point operations by what they are done for.")
      .def_readonly("per_output", &Flops::per_output)
      .def_readonly("per_input", &Flops::per_input)
      .def_readonly("per_window", &Flops::per_window)
      .def_readonly("products", &Flops::products);
  py::class_<Operation>(m, "Operation", "A list entry.")
      .def_property_readonly("name", [](const Operation& o) { return o.op.name; })
      .def_property_readonly("shapes", [](const Operation& o) { return o.op.shapes; })
      .def_property_readonly("summary", [](const Operation& o) { return o.op.summary; })
      .def_property_readonly("label", [](const Operation& o) { return text_or_none(o.op.label); })
      .def_readonly("arguments", &Operation::arguments)
      .def_readonly("takes_arrays", &Operation::takes_arrays)
      .def_property_readonly("locality", [](const Operation& o) { return o.op.traits.locality; })
      .def_property_readonly(
          "is_channelwise", [](const Operation& o) { return is_channelwise(o.op.traits.locality); })
      .def_property_readonly("is_batchwise",
                             [](const Operation& o) { return is_batchwise(o.op.traits.locality); })
      .def_property_readonly("inputs", [](const Operation& o) { return o.op.traits.inputs; })
      .def_property_readonly("flops", [](const Operation& o) { return o.op.traits.flops; })
      .def_property_readonly("onnx",
                             [](const Operation& o) { return text_or_none(o.op.traits.onnx); });
}

}  // namespace renga::python
