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

// Address, number of elements, dtype.
using Described = std::tuple<std::uintptr_t, std::size_t, std::string>;

std::vector<DeviceArray> device_arrays(const std::vector<Described>& described) {
  std::vector<DeviceArray> arrays;
  for (const auto& [data, n, dtype] : described) {
    arrays.push_back({data, n, dtype_from_string(dtype)});
  }
  return arrays;
}

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
          "call",
          [](NcclGroup& self, const std::string& collective, const std::vector<Described>& xs,
             const std::vector<Described>& ys, const std::string& op, int root) {
            return self.call(collective,
                             {device_arrays(xs), device_arrays(ys), op_from_string(op), root});
          },
          py::arg("collective"), py::arg("xs"), py::arg("ys"), py::arg("op") = "sum",
          py::arg("root") = 0,
          "Starts a collective; arrays are (address, number of elements, dtype).")
      .def("throw_failure", &NcclGroup::throw_failure,
           "Raises why the collectives were aborted, if they were.");
}
