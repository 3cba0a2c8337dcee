// renga._cuda: importing it puts the CUDA driver and its kernels into the core's tables.
#include <pybind11/stl.h>

#include "devices/cuda/cuda.h"
#include "python/array.h"
#include "python/variable.h"

namespace py = pybind11;

PYBIND11_MODULE(_cuda, m) {
  using namespace renga;
  m.doc() = "CUDA devices for the core.";
  py::module_::import("renga._core");  // Variable is its class
  cuda::count();                       // raises where there is no device
  m.def("count", &cuda::count, "How many devices there are.");
  m.def(
      "to_device",
      [](const Array& x, int index) {
        return Variable(to_device(x, device_from_string("cuda:" + std::to_string(index))), true);
      },
      py::arg("array"), py::arg("index") = 0, "A leaf Variable with a copy of an ndarray.");
}
