// Elements of Variables as messages carry them: their order in memory, and dtypes that Python
// lacks.
#include "python/elements.h"

#include <pybind11/stl.h>
#include <pybind11/typing.h>

#include "ops/indexing/indexing.h"
#include "python/variable.h"
#include "tensor/views.h"

namespace renga::python {

void bind_elements(py::module_& m) {
  m.def("gather", &gather, py::arg("table"), py::arg("indices"),
        "Rows of `table` (P, n, Q) named by integers of one axis: (P, count, Q).");
  m.def("scatter_add", &scatter_add, py::arg("rows"), py::arg("indices"), py::arg("n"),
        "Rows (P, count, Q) added in their order to zeros (P, n, Q).");
  m.def(
      "in_memory_order",
      [](const Variable& x) {
        const Axes order = memory_order(x.array());
        return std::pair(py::typing::Tuple<py::int_, py::ellipsis>(py::cast(order)),
                         Variable(transpose_view(x.array(), order)));
      },
      py::arg("x"),
      "The axes from the outermost in memory to the innermost, and a view in this order.");
  m.def(
      "from_memory_order",
      [](const Variable& x, const Shape& shape, const Axes& order) {
        Shape in_memory;
        Axes inverse = order;
        for (int i = 0; i < order.size(); ++i) {
          in_memory.push_back(shape[static_cast<int>(order[i])]);
          inverse[static_cast<int>(order[i])] = i;
        }
        return Variable(transpose_view(reshape_view(x.array(), in_memory), inverse));
      },
      py::arg("x"), py::arg("shape"), py::arg("order"),
      "A view of shape `shape` of elements that have the order of in_memory_order.");
  m.def(
      "dtype_name", [](const Variable& x) { return std::string(name_of(x.dtype())); }, py::arg("x"),
      "The name of the dtype; bfloat16 arrays are float32 in Python.");
  m.def(
      "empty_variable",
      [](const Shape& shape, const std::string& dtype, const std::string& device,
         bool requires_grad) {
        const auto type = dtype_named(dtype);
        require<std::invalid_argument>(type.has_value(), "empty_variable: expected a dtype, got ",
                                       dtype);
        return Variable(empty(shape, *type, device_from_string(device)), requires_grad);
      },
      py::arg("shape"), py::arg("dtype"), py::arg("device"), py::arg("requires_grad") = false,
      "A leaf that is not initialized.");
}

}  // namespace renga::python
