// How operations are listed. Each family has a `list_<family>_ops(visit)` that names each of its
// operations once. The Python binding, the reference docs and the coverage test visit these lists.
#pragma once

#include "autograd/variable.h"

namespace renga {

// An operation's name and documentation. `shapes` is one line; axes are named as in the docs.
struct Op {
  const char* name;
  const char* shapes;
  const char* summary;
};

// A required argument.
struct Arg {
  const char* name;
};

// An optional argument.
template <class T>
struct Default {
  const char* name;
  T value;
};
template <class T>
Default(const char*, T) -> Default<T>;

}  // namespace renga
