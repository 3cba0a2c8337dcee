#include "compression/compression.h"

#include "python/array.h"
#include "python/compression.h"

namespace renga::python {
namespace {

using Out = OutputArray;

void bind_sparse(py::module_& m) {
  m.def(
      "accumulate", [](const Array& x, const Out& y) { return accumulate(x, y.array); },
      py::arg("x"), py::arg("y"), "Adds x to y and returns True, unless x has overflowed.");
  m.def(
      "take_largest",
      [](const Out& x, const Out& indices, const Out& values) {
        take_largest(x.array, indices.array, values.array);
      },
      py::arg("x"), py::arg("indices"), py::arg("values"),
      "Moves the elements of the largest magnitude out of x.");
  m.def(
      "add_at",
      [](const Out& y, const Array& indices, const Array& values) {
        add_at(y.array, indices, values);
      },
      py::arg("y"), py::arg("indices"), py::arg("values"));
  m.def(
      "take_random",
      [](const Out& x, std::uint64_t seed, const Out& values) {
        take_random(x.array, seed, values.array);
      },
      py::arg("x"), py::arg("seed"), py::arg("values"),
      "Moves a random element of each of equal parts out of x.");
  m.def(
      "add_at_random",
      [](const Out& y, std::uint64_t seed, const Array& values) {
        add_at_random(y.array, seed, values);
      },
      py::arg("y"), py::arg("seed"), py::arg("values"));
}

void bind_quantization(py::module_& m) {
  m.attr("QUANTIZATION_BLOCK") = kQuantizationBlock;
  m.attr("SIGN_BLOCK") = kSignBlock;
  m.def(
      "quantize",
      [](const Array& x, int bits, std::uint64_t seed, const Out& codes, const Out& scales) {
        quantize(x, bits, seed, codes.array, scales.array);
      },
      py::arg("x"), py::arg("bits"), py::arg("seed"), py::arg("codes"), py::arg("scales"));
  m.def(
      "add_dequantized",
      [](const Out& y, int bits, const Array& codes, const Array& scales) {
        add_dequantized(y.array, bits, codes, scales);
      },
      py::arg("y"), py::arg("bits"), py::arg("codes"), py::arg("scales"));
  m.def(
      "take_signs",
      [](const Out& x, const Out& signs, const Out& means) {
        take_signs(x.array, signs.array, means.array);
      },
      py::arg("x"), py::arg("signs"), py::arg("means"),
      "Moves signs and the means of both signs out of x.");
  m.def(
      "add_signs",
      [](const Out& y, const Array& signs, const Array& means) {
        add_signs(y.array, signs, means);
      },
      py::arg("y"), py::arg("signs"), py::arg("means"));
}

}  // namespace

void bind_compression(py::module_& core) {
  py::module_ m = core.def_submodule("compression", "Kernels of the compression of gradients.");
  bind_sparse(m);
  bind_quantization(m);
}

}  // namespace renga::python
