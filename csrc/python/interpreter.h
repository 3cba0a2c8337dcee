// Reference counting on threads that may or may not hold the GIL.
#pragma once

#include <pybind11/pybind11.h>

#include <mutex>
#include <vector>

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

// A thread's own reference to a Python object, for a thread_local. When the thread ends, the object
// is left to the next thread that sets a reference: the end of a thread may not wait for the GIL,
// because the interpreter may end meanwhile, and with it, in the middle of a destructor, the wait.
class ThreadReference {
 public:
  ThreadReference() = default;
  ~ThreadReference() {
    if (!object_) return;
    const std::lock_guard lock(left().mutex);
    left().objects.push_back(object_.release().ptr());
  }
  ThreadReference(const ThreadReference&) = delete;
  ThreadReference& operator=(const ThreadReference&) = delete;

  // An empty handle where nothing is set.
  pybind11::handle get() const { return object_; }
  void set(pybind11::object object) {
    object_ = std::move(object);
    std::vector<PyObject*> objects;
    {
      const std::lock_guard lock(left().mutex);
      objects.swap(left().objects);
    }
    for (PyObject* const left_behind : objects) Py_DECREF(left_behind);
  }

 private:
  struct Left {
    std::mutex mutex;
    std::vector<PyObject*> objects;
  };
  static Left& left() {
    static auto* const instance = new Left;  // the main thread ends after other statics
    return *instance;
  }

  pybind11::object object_;
};

}  // namespace renga::python
