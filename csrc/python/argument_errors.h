#pragma once
// Errors for arguments that a bound function does not take.

#include <Python.h>

namespace renga::python {

// Makes a function that pybind11 has bound raise "name: expected (…), got (…)", with the shapes of
// arrays and not their elements, for arguments that it does not take.
void explain_wrong_arguments(PyMethodDef* function);

}  // namespace renga::python
