// How operations are listed. Each family has one `list_<family>_ops(visit)` that names its
// operations once; the Python binding, the reference docs and the coverage test are visitors of
// these lists.
#pragma once

#include "autograd/variable.h"

namespace renga {

// What people read about an operation. `shapes` is one line, axes named as in the docs.
struct Op {
  const char* name;
  const char* shapes;
  const char* summary;
};

// An argument that must be given.
struct Arg {
  const char* name;
};

// An argument with a default.
template <class T>
struct Default {
  const char* name;
  T value;
};
template <class T>
Default(const char*, T) -> Default<T>;

}  // namespace renga
