// Python's lock, where the core may or may not hold it.
#pragma once

#include <pybind11/pybind11.h>

namespace renga::python {

// Gives a reference back. Objects of the core that hold one may be destroyed on any thread; taking
// the lock where it is held already would cost as much as a small operation.
inline void release(PyObject* object) {
  if (PyGILState_Check()) {
    Py_XDECREF(object);
    return;
  }
  const pybind11::gil_scoped_acquire lock;
  Py_XDECREF(object);
}

}  // namespace renga::python
