// The only code that is linked to NCCL, loaded when somebody asks for pure_nccl.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <map>

#include "nccl/clique.h"

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

Span span(std::uintptr_t data, std::int64_t n, const std::string& dtype) {
  return {data, n, dtype_from_string(dtype)};
}

}  // namespace

PYBIND11_MODULE(_communicators_nccl, m) {
  m.doc() = "Communication through NCCL.";
  py::module_::import("renga._communicators");
  m.def("what_is_missing", &what_is_missing, "Why NCCL cannot be used here; empty where it can.");
  m.def(
      "new_identity", [] { return py::bytes(new_identity()); },
      "What one rank makes and all need to form a clique.");
  py::class_<Clique>(m, "Clique")
      .def(py::init<const std::string&, int, int, int, double>(), py::arg("identity"),
           py::arg("rank"), py::arg("size"), py::arg("device"), py::arg("seconds"))
      .def(
          "all_reduce",
          [](Clique& self, std::uintptr_t x, std::uintptr_t y, std::int64_t n,
             const std::string& dtype, const std::string& op) {
            return self.all_reduce(span(x, n, dtype), y, op_from_string(op));
          },
          py::arg("x"), py::arg("y"), py::arg("n"), py::arg("dtype"), py::arg("op"))
      .def(
          "reduce_scatter",
          [](Clique& self, std::uintptr_t x, std::uintptr_t y, std::int64_t n,
             const std::string& dtype, const std::string& op) {
            return self.reduce_scatter(span(x, n, dtype), y, op_from_string(op));
          },
          py::arg("x"), py::arg("y"), py::arg("n"), py::arg("dtype"), py::arg("op"))
      .def(
          "all_gather",
          [](Clique& self, std::uintptr_t x, std::uintptr_t y, std::int64_t n,
             const std::string& dtype) { return self.all_gather(span(x, n, dtype), y); },
          py::arg("x"), py::arg("y"), py::arg("n"), py::arg("dtype"))
      .def(
          "all_to_all",
          [](Clique& self, std::uintptr_t x, std::uintptr_t y, std::int64_t n,
             const std::string& dtype) { return self.all_to_all(span(x, n, dtype), y); },
          py::arg("x"), py::arg("y"), py::arg("n"), py::arg("dtype"))
      .def(
          "broadcast",
          [](Clique& self, std::uintptr_t x, std::int64_t n, const std::string& dtype, int root) {
            return self.broadcast(span(x, n, dtype), root);
          },
          py::arg("x"), py::arg("n"), py::arg("dtype"), py::arg("root"));
}
