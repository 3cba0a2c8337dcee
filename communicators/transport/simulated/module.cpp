#include "transport/simulated/module.h"

#include <pybind11/stl.h>

#include "collectives/all_reduce/algorithm_selection.h"
#include "collectives/arguments.h"
#include "collectives/flat_bucket.h"
#include "collectives/partition.h"
#include "devices/gil_release.h"
#include "python/array.h"

namespace py = pybind11;

namespace renga {

namespace {

using Arrays = std::vector<Array>;

Arrays contiguous_arrays(const Arrays& xs) {
  Arrays result;
  for (const Array& x : xs) result.push_back(contiguous(x));
  return result;
}

// Reduces one operand per rank, in rank order. Each is a list of arrays.
void reduce_operands(const std::vector<Arrays>& operands, const Arrays& results,
                     Reduction reduction, std::optional<Dtype> communication_dtype) {
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

// The array of a broadcast. The root's is only read.
Array broadcast_array(const char* name, py::handle x, bool is_root) {
  return is_root ? x.cast<Array>() : python::writable_array(x, name);
}

}  // namespace

void bind_simulated(py::module_& m) {
  m.def(
      "all_reduce_call",
      [](const Arrays& xs, const py::iterable& ys, const std::string& op,
         const std::string& communication_dtype) {
        return all_reduce_call(xs, python::writable_arrays(ys, "all_reduce: out"),
                               reduction_from_string(op), floating_dtype(communication_dtype))
            .text();
      },
      py::arg("xs"), py::arg("ys"), py::arg("op"), py::arg("communication_dtype"),
      "Checks the arguments; the description that ranks compare. So do the following.");
  m.def(
      "reduce_scatter_call",
      [](const Array& x, py::handle y, const std::string& op, int ranks) {
        return reduce_scatter_call(x, python::writable_array(y, "reduce_scatter: out"),
                                   reduction_from_string(op), ranks)
            .text();
      },
      py::arg("x"), py::arg("y"), py::arg("op"), py::arg("ranks"));
  m.def(
      "all_gather_call",
      [](const Array& x, py::handle y, int ranks) {
        return all_gather_call(x, python::writable_array(y, "all_gather: out"), ranks).text();
      },
      py::arg("x"), py::arg("y"), py::arg("ranks"));
  m.def(
      "all_to_all_call",
      [](const Array& x, py::handle y, int ranks) {
        return all_to_all_call(x, python::writable_array(y, "all_to_all: out"), ranks).text();
      },
      py::arg("x"), py::arg("y"), py::arg("ranks"));
  m.def(
      "broadcast_call",
      [](const char* name, py::handle x, int root, bool is_root) {
        const Array array = broadcast_array(name, x, is_root);
        return Call(name).with(array.shape(), array.dtype()).with_peer(root).text();
      },
      py::arg("name"), py::arg("x"), py::arg("root"), py::arg("is_root"));
  m.def(
      "check_algorithm", [](const std::string& name) { all_reduce::algorithm_from_string(name); },
      py::arg("name"));
  m.def("call_site", [] { return current_call_site(); });
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

}  // namespace renga
