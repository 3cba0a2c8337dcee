// Reference counting on threads that may or may not hold the GIL.
#pragma once

#include <pybind11/pybind11.h>

namespace renga::python {

// Releases a reference. Objects of the core that own one may be destroyed on any thread; acquiring
// the GIL where it is held already would cost as much as a small operation.
inline void release(PyObject* object) {
  if (PyGILState_Check()) {
    Py_XDECREF(object);
    return;
  }
  const pybind11::gil_scoped_acquire lock;
  Py_XDECREF(object);
}

// A thread's own reference to a Python object, for a thread_local.
class ThreadReference {
 public:
  ThreadReference() = default;
  ~ThreadReference() {
    PyObject* const object = object_.release().ptr();
    // The main thread ends after the interpreter.
    if (Py_IsInitialized()) release(object);
  }
  ThreadReference(const ThreadReference&) = delete;
  ThreadReference& operator=(const ThreadReference&) = delete;

  // An empty handle where nothing is set.
  pybind11::handle get() const { return object_; }
  void set(pybind11::object object) { object_ = std::move(object); }

 private:
  pybind11::object object_;
};

}  // namespace renga::python
