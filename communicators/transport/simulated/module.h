// The binding of what virtual ranks share with the compiled communicator: checks and arithmetic.
#pragma once

#include <pybind11/pybind11.h>

namespace renga {

void bind_simulated(pybind11::module_& m);

}  // namespace renga
