// The only module linked to NCCL, imported with the first pure_nccl communicator.
// RENGA_NCCL_MODULE is its name.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <map>
#include <tuple>
#include <vector>

#include "nccl/nccl_group.h"

namespace py = pybind11;

namespace {

using namespace renga::nccl;

ncclDataType_t dtype_from_string(const std::string& name) {
  static const std::map<std::string, ncclDataType_t> dtypes = {
      {"int8", ncclInt8},       {"uint8", ncclUint8},     {"bool", ncclUint8},
      {"int32", ncclInt32},     {"uint32", ncclUint32},   {"int64", ncclInt64},
      {"uint64", ncclUint64},   {"float16", ncclFloat16}, {"bfloat16", ncclBfloat16},
      {"float32", ncclFloat32}, {"float64", ncclFloat64}};
  const auto found = dtypes.find(name);
  if (found == dtypes.end()) throw py::type_error("nccl: no arrays of dtype " + name);
  return found->second;
}

ncclRedOp_t op_from_string(const std::string& name) {
  static const std::map<std::string, ncclRedOp_t> ops = {
      {"sum", ncclSum}, {"mean", ncclAvg}, {"max", ncclMax}, {"min", ncclMin}, {"prod", ncclProd}};
  const auto found = ops.find(name);
  if (found == ops.end()) {
    throw py::value_error("all_reduce: expected op sum, mean, max, min or prod, got " + name);
  }
  return found->second;
}

DeviceArray device_array(std::uintptr_t data, std::int64_t n, const std::string& dtype) {
  return {data, n, dtype_from_string(dtype)};
}

// An array and where the result goes.
using InOut = std::tuple<std::uintptr_t, std::uintptr_t, std::int64_t, std::string>;

}  // namespace

PYBIND11_MODULE(RENGA_NCCL_MODULE, m) {
  m.doc() = "Communication through NCCL.";
  py::module_::import("renga._communicators");
  m.def("unavailable_reason", &unavailable_reason,
        "Why NCCL cannot be used here; empty if it can.");
  m.def(
      "create_unique_id", [] { return py::bytes(create_unique_id()); },
      "The id that one rank creates and all pass to NcclGroup.");
  py::class_<NcclGroup, std::shared_ptr<NcclGroup>>(m, "NcclGroup")
      .def(py::init<const std::string&, int, int, int, double>(), py::arg("unique_id"),
           py::arg("rank"), py::arg("size"), py::arg("device"), py::arg("timeout_seconds"))
      .def(
          "all_reduce",
          [](NcclGroup& self, const std::vector<InOut>& arrays, const std::string& op) {
            std::vector<DeviceArray> xs;
            std::vector<std::uintptr_t> ys;
            for (const auto& [x, y, n, dtype] : arrays) {
              xs.push_back(device_array(x, n, dtype));
              ys.push_back(y);
            }
            return self.all_reduce(xs, ys, op_from_string(op));
          },
          py::arg("arrays"), py::arg("op"), "`arrays` are (x, y, n, dtype).")
      .def(
          "reduce_scatter",
          [](NcclGroup& self, std::uintptr_t x, std::uintptr_t y, std::int64_t n,
             const std::string& dtype, const std::string& op) {
            return self.reduce_scatter(device_array(x, n, dtype), y, op_from_string(op));
          },
          py::arg("x"), py::arg("y"), py::arg("n"), py::arg("dtype"), py::arg("op"))
      .def(
          "all_gather",
          [](NcclGroup& self, std::uintptr_t x, std::uintptr_t y, std::int64_t n,
             const std::string& dtype) { return self.all_gather(device_array(x, n, dtype), y); },
          py::arg("x"), py::arg("y"), py::arg("n"), py::arg("dtype"))
      .def(
          "all_to_all",
          [](NcclGroup& self, std::uintptr_t x, std::uintptr_t y, std::int64_t n,
             const std::string& dtype) { return self.all_to_all(device_array(x, n, dtype), y); },
          py::arg("x"), py::arg("y"), py::arg("n"), py::arg("dtype"))
      .def(
          "broadcast",
          [](NcclGroup& self, std::uintptr_t x, std::int64_t n, const std::string& dtype,
             int root) { return self.broadcast(device_array(x, n, dtype), root); },
          py::arg("x"), py::arg("n"), py::arg("dtype"), py::arg("root"))
      .def("throw_failure", &NcclGroup::throw_failure,
           "Raises why the collectives were aborted, if they were.");
}
