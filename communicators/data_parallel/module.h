// The binding of data_parallel/.
#pragma once

#include <pybind11/pybind11.h>

#include "communicator.h"

namespace renga {

// `options` are those of a call from Python.
void bind_data_parallel(pybind11::module_& m,
                        LaunchOptions (*options)(const Communicator&, bool wait));

}  // namespace renga
