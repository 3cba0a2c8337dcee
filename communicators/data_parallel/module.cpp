#include "data_parallel/module.h"

#include <pybind11/stl.h>

#include "data_parallel/hogwild.h"
#include "data_parallel/sharded_update.h"
#include "python/array.h"

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
  m.def(
      "hogwild_sgd",
      [](py::handle x, const Array& g, double lr) {
        hogwild_sgd(python::writable_array(x, "hogwild"), g, lr);
      },
      py::arg("x"), py::arg("g"), py::arg("lr"),
      "x -= lr g in memory that other ranks write to, where g is not zero.");
}

}  // namespace renga
