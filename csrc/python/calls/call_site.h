// Where the user's program called an operation.
#pragma once

#include <string>

namespace renga::python {

// Frames of code below `package` are the library's own and are passed over.
void install_call_sites(const std::string& package);

}  // namespace renga::python
