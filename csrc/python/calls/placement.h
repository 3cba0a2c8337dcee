// Placement of calls: a Python object decides, for each operation, whether this process computes it
// or only the shapes of its outputs (renga.pipeline follows the other stages so).
#pragma once

#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "python/calls/call_variables.h"
#include "python/variable.h"

namespace renga::python {

// This thread's placement, nullptr where it has none.
inline thread_local PyObject* call_placement = nullptr;

// The placement of threads that have none, nullptr where they compute every operation.
inline PyObject* default_call_placement = nullptr;

inline PyObject* present_call_placement() {
  return call_placement != nullptr ? call_placement : default_call_placement;
}

// Asks the placement what to call an operation with.
class PlacedCall {
 public:
  // `xs` are the Variables among the arguments, in their order.
  PlacedCall(const char* label, const std::vector<Variable>& xs);

  bool is_computed() const { return xs_.has_value(); }
  void done(const std::vector<Variable>& ys) const;

  // What stands for an argument; called for each of them in order.
  Variable operator()(const Variable& x);
  std::vector<Variable> operator()(const std::vector<Variable>& xs);
  Array operator()(const Array& x) const;
  OutputArray operator()(const OutputArray& x) const { return {(*this)(x.array)}; }
  template <class T>
  std::optional<T> operator()(const std::optional<T>& x) {
    if (!x) return {};
    return (*this)(*x);
  }
  template <class Other>
  const Other& operator()(const Other& other) const {
    return other;
  }

 private:
  std::optional<std::vector<Variable>> xs_;  // to compute with; none: only shapes
  std::size_t next_ = 0;
};

// The operation with its arguments placed; `compute` calls it where it is computed here.
template <class Result, class Function, class Compute, class... Args>
Result call_placed(const char* label, Function function, const Compute& compute,
                   const Args&... args) {
  std::vector<Variable> xs;
  (append_variables(xs, args), ...);
  PlacedCall call(label, xs);
  // Braces evaluate from left to right.
  const std::tuple<std::decay_t<decltype(call(args))>...> placed{call(args)...};
  Result y = call.is_computed() ? std::apply(compute, placed) : std::apply(function, placed);
  call.done(outputs_of(y));
  return y;
}

void bind_placement(py::module_& m);

}  // namespace renga::python
