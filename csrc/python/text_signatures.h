#pragma once
// Signatures of bound functions, for Python's inspect and for errors.

#include <pybind11/pybind11.h>

namespace renga::python {

// Gives the functions, classes and submodules of a module what inspect.signature reads,
// and errors for arguments that do not fit their signatures.
void add_text_signatures(const pybind11::module_& module);

}  // namespace renga::python
