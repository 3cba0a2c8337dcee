// renga._core_mirror: importing it adds the device "mirror" to the core.
#include <pybind11/pybind11.h>

#include "mirror_device/mirror_device.h"

PYBIND11_MODULE(_core_mirror, m) {
  m.doc() = "A second device in the host's memory, for tests.";
  pybind11::module_::import("renga._core");
  renga::mirror_device();
}
