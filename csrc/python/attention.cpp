#include "python/attention.h"

#include <pybind11/stl.h>

#include "ops/attention/attention.h"
#include "python/array.h"

namespace renga::python {

void bind_attention(py::module_& core) {
  py::module_ m = core.def_submodule("attention", "Attention to blocks of keys, on ndarrays.");
  py::class_<Attention>(m, "Attention", "The operands of scaled_dot_product_attention.")
      .def(py::init([](const Array& q, const Array& k, const Array& v,
                       const std::optional<Array>& mask, double scale, bool is_causal,
                       double dropout, std::uint64_t seed) {
             return Attention{q, k, v, mask.value_or(Array()), scale, is_causal, dropout, seed};
           }),
           py::arg("query"), py::arg("key"), py::arg("value"), py::arg("attn_mask"),
           py::arg("scale"), py::arg("is_causal"), py::arg("dropout_p"), py::arg("seed"));
  m.def(
      "attend_to_block",
      [](const Attention& attention) {
        const AttentionBlock block = attend_to_block(attention);
        return py::make_tuple(to_python(block.y), to_python(block.log_sums));
      },
      py::arg("attention"),
      "The result for a block of keys, and the logarithms of its softmax's denominators.");
  m.def(
      "block_gradients",
      [](const Attention& attention, const Array& y, const Array& log_sums, const Array& gy) {
        const auto gxs = attention_block_gradients(attention, {y, log_sums}, gy);
        return py::make_tuple(to_python(gxs[0]), to_python(gxs[1]), to_python(gxs[2]));
      },
      py::arg("attention"), py::arg("y"), py::arg("log_sums"), py::arg("gy"),
      "What a block of keys contributes to the gradients of query, key and value, from the result "
      "of all blocks.");
}

}  // namespace renga::python
