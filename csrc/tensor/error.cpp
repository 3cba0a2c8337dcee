#include "tensor/error.h"

namespace renga {

void fail_as_undefined(const char* what, const char* function) {
  fail<std::invalid_argument>(function, ": expected ", what,
                              " with elements, got an undefined one");
}

}  // namespace renga
