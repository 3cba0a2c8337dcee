#include "data_parallel/module.h"

#include <pybind11/stl.h>

#include "data_parallel/sharded_update.h"

namespace py = pybind11;

namespace renga {

void bind_data_parallel(py::module_& m, LaunchOptions (*options)(const Communicator&, bool wait)) {
  m.def(
      "sharded_update",
      [options](Communicator& comm, const std::vector<Update>& updates) {
        sharded_update(comm, updates, options(comm, true));
      },
      py::arg("comm"), py::arg("updates"),
      "Averages gradients and applies updates, each rank to its partition of every array.");
}

}  // namespace renga
