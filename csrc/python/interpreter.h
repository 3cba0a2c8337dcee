// Reference counting on threads that may or may not hold the GIL.
#pragma once

#include <cxxabi.h>
#include <pybind11/pybind11.h>
#include <unistd.h>

#include <mutex>
#include <optional>
#include <vector>

namespace renga::python {

[[noreturn]] inline void sleep_until_exit() {
  while (true) pause();
}

// Calls what waits for the GIL. While the interpreter is finalized Python ends a thread that waits,
// by unwinding its stack; the first destructor there would end the program. Such a thread sleeps
// until the process ends, as Python has it from 3.14 on.
template <class Wait>
void wait_for_gil(const Wait& wait) {
  try {
    wait();
  } catch (const abi::__forced_unwind&) {
    sleep_until_exit();
  }
}

// Whether the interpreter is being finalized, or has been, and this thread is not known to it: then
// there is no GIL to wait for. The thread that finalizes is known as long as it may need the GIL.
inline bool has_lost_interpreter() {
  return Py_IsInitialized() == 0 && PyGILState_GetThisThreadState() == nullptr;
}

class GilAcquire {
 public:
  GilAcquire() {
    if (has_lost_interpreter()) sleep_until_exit();
    wait_for_gil([this] { lock_.emplace(); });
  }

 private:
  std::optional<pybind11::gil_scoped_acquire> lock_;
};

// Releases a reference. Objects of the core that own one may be destroyed on any thread; acquiring
// the GIL where it is held already would cost as much as a small operation. An object that outlives
// the interpreter keeps its references.
inline void release(PyObject* object) {
  if (has_lost_interpreter()) return;
  if (PyGILState_Check()) {
    Py_XDECREF(object);
    return;
  }
  const GilAcquire lock;
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
