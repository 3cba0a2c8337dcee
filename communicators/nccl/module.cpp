// The binding of librenga_nccl, imported with the first pure_nccl communicator.
// RENGA_NCCL_MODULE is its name.
#include <pybind11/pybind11.h>

#include "nccl/nccl_group.h"

namespace py = pybind11;

PYBIND11_MODULE(RENGA_NCCL_MODULE, m) {
  m.doc() = "Communication through NCCL.";
  py::module_::import("renga._communicators");
  m.def("unavailable_reason", &renga::nccl::unavailable_reason,
        "Why NCCL cannot be used here; empty if it can.");
  m.def(
      "create_unique_id",
      [] {
        const ncclUniqueId id = renga::nccl::create_unique_id();
        return py::bytes(id.internal, sizeof id.internal);
      },
      "The id that one rank creates and all pass to Communicator.connect_devices.");
}
