#include "data_parallel/module.h"

#include <pybind11/stl.h>

#include "data_parallel/hogwild.h"
#include "data_parallel/sharded_update.h"
#include "python/array.h"
#include "shared_memory/shared_lock.h"

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
  py::class_<SharedLock>(m, "SharedLock",
                         "A lock in the first bytes of a window, for a with statement.")
      .def(py::init([](py::handle memory) {
             return SharedLock(python::writable_array(memory, "SharedLock"));
           }),
           py::arg("memory"))
      .def("initialize", &SharedLock::initialize)
      .def("__enter__", &SharedLock::lock)
      .def("__exit__", [](SharedLock& lock, const py::args&) { lock.unlock(); });
}

}  // namespace renga
