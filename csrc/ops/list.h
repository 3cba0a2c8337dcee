// Operations are listed by families. Each family has a `list_<family>_ops(visit)` that names each
// of its operations once. The Python binding, the reference docs and the coverage test visit these
// lists.
#pragma once

#include "autograd/variable.h"
#include "ops/traits.h"

namespace renga {

// An operation's name, documentation and traits. `shapes` is one line; axes are named as in the
// docs.
struct Op {
  const char* name;
  const char* shapes;
  const char* summary;
  Traits traits = {};
  // The label of its graph nodes and of calls by an operator, if not the name in CamelCase.
  const char* label = nullptr;
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
