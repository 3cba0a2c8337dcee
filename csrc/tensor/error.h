// Exceptions of the core, and require() to throw them.
#pragma once

#include <sstream>
#include <stdexcept>
#include <string>

namespace renga {

// Shapes or dtypes that do not fit an operation: Python's type_check.InvalidType.
class InvalidType : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

template <class Error = InvalidType, class... Parts>
[[noreturn, gnu::cold, gnu::noinline]] void fail(const Parts&... parts) {
  std::ostringstream text;
  (text << ... << parts);
  throw Error(text.str());
}

// Throws `Error` with the concatenated parts unless `held`.
template <class Error = InvalidType, class... Parts>
void require(bool held, const Parts&... parts) {
  if (!held) [[unlikely]]
    fail<Error>(parts...);
}

// Throws std::invalid_argument for an undefined Variable or Array that a function was given.
[[noreturn, gnu::cold]] void fail_as_undefined(const char* what, const char* function);

}  // namespace renga
