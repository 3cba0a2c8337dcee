// Reference counting on threads that may or may not hold the GIL, and what a Python thread keeps.
#pragma once

#include <cxxabi.h>
#include <pybind11/pybind11.h>
#include <unistd.h>

#include <memory>
#include <optional>

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

// This thread's only object of a class that is bound, made at the first call. It is in the Python
// thread's dictionary, and ends with it.
template <class T>
T& of_thread(const char* name) {
  static PyObject* const key = PyUnicode_InternFromString(name);
  PyObject* const dictionary = PyThreadState_GetDict();
  PyObject* found = PyDict_GetItemWithError(dictionary, key);
  if (found == nullptr) {
    const pybind11::object made = pybind11::cast(std::make_unique<T>());
    if (PyDict_SetItem(dictionary, key, made.ptr()) < 0) throw pybind11::error_already_set();
    found = made.ptr();
  }
  return pybind11::handle(found).cast<T&>();
}

}  // namespace renga::python
