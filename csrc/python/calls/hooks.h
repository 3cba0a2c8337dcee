// Function hooks: Python objects called before and after each operation, forward and backward.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "devices/allocator.h"
#include "python/calls/options.h"
#include "python/calls/placement.h"
#include "python/variable.h"

namespace renga::python {

// This thread's hooks by name (a dict), nullptr where there are none.
inline thread_local PyObject* function_hooks = nullptr;

// Calls forward_preprocess of the hooks for operation `label` on `xs`, called with `arguments`, and
// forward_postprocess in done().
class HookedCall {
 public:
  HookedCall(const char* label, const std::vector<Variable>& xs, py::tuple arguments);
  void done(const std::vector<Variable>& ys) const;

 private:
  py::object call_;
  py::tuple in_data_;
};

// Throws the error with the name of the operation before its message.
[[noreturn]] void fail_for(const char* label, const OutOfMemory& error);

// The type as which Python's argument for a parameter of type T is read.
template <class T>
struct ReadAs {
  using type = T;
};
template <>
struct ReadAs<std::int64_t> {
  using type = Integer;
};
template <>
struct ReadAs<std::optional<std::int64_t>> {
  using type = std::optional<Integer>;
};
template <>
struct ReadAs<const std::optional<std::int64_t>&> {
  using type = const std::optional<Integer>&;
};

// function(args...) with calls of the hooks, if there are any.
template <class Result, class Function, class... Args>
Result call_hooked(const char* label, Function function, Args&... args) {
  if (function_hooks == nullptr) return function(args...);
  std::vector<Variable> xs;
  (append_variables(xs, args), ...);
  const HookedCall call(label, xs, py::make_tuple(args...));
  Result y = function(args...);
  call.done(outputs_of(y));
  return y;
}

// Wraps the function with its placement and calls of the hooks. Prefixes the message of OutOfMemory
// with its name.
template <class Result, class... Args>
auto hooked(const char* label, Result (*function)(Args...)) {
  return [label, function](typename ReadAs<Args>::type... args) -> Result {
    try {
      if (function_hooks == nullptr && present_call_placement() == nullptr) [[likely]]
        return function(std::forward<typename ReadAs<Args>::type>(args)...);
      const auto compute = [&](auto&... given) {
        return call_hooked<Result>(label, function, given...);
      };
      if (present_call_placement() == nullptr) return compute(args...);
      return call_placed<Result>(label, function, compute, args...);
    } catch (const OutOfMemory& error) {
      fail_for(label, error);
    }
  };
}

void bind_hooks(py::module_& m);

}  // namespace renga::python
