// The Variables among the arguments and the results of an operation.
#pragma once

#include <optional>
#include <tuple>
#include <type_traits>
#include <vector>

#include "autograd/variable.h"

namespace renga::python {

inline void append_variables(std::vector<Variable>& all, const Variable& x) { all.push_back(x); }
inline void append_variables(std::vector<Variable>& all, const std::optional<Variable>& x) {
  if (x) all.push_back(*x);
}
inline void append_variables(std::vector<Variable>& all, const std::vector<Variable>& xs) {
  all.insert(all.end(), xs.begin(), xs.end());
}
template <class Other>
void append_variables(std::vector<Variable>&, const Other&) {}

// Returns what an operation returned, arrays without a history too.
template <class Result>
std::vector<Variable> outputs_of(const Result& result) {
  std::vector<Variable> ys;
  const auto append = [&ys]<class Y>(const Y& y) {
    if constexpr (std::is_same_v<Y, Array>) {
      ys.emplace_back(y);
    } else {
      append_variables(ys, y);
    }
  };
  if constexpr (requires { std::tuple_size<Result>::value; }) {
    std::apply([&](const auto&... y) { (append(y), ...); }, result);
  } else {
    append(result);
  }
  return ys;
}

}  // namespace renga::python
