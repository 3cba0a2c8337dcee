// Function hooks: Python objects called before and after each operation, forward and backward.
#pragma once

#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "devices/allocator.h"
#include "python/options.h"
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

inline void append_variables(std::vector<Variable>& all, const Variable& x) { all.push_back(x); }
inline void append_variables(std::vector<Variable>& all, const std::optional<Variable>& x) {
  if (x) all.push_back(*x);
}
inline void append_variables(std::vector<Variable>& all, const std::vector<Variable>& xs) {
  all.insert(all.end(), xs.begin(), xs.end());
}
template <class Other>
void append_variables(std::vector<Variable>&, const Other&) {}

// What an operation returned, arrays without a history too.
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

// Wraps the function with calls of the hooks. Prefixes the message of OutOfMemory with its name.
template <class Result, class... Args>
auto hooked(const char* label, Result (*function)(Args...)) {
  return [label, function](typename ReadAs<Args>::type... args) -> Result {
    try {
      if (function_hooks == nullptr) [[likely]]
        return function(std::forward<typename ReadAs<Args>::type>(args)...);
      std::vector<Variable> xs;
      (append_variables(xs, args), ...);
      const HookedCall call(label, xs, py::make_tuple(args...));
      Result y = function(std::forward<typename ReadAs<Args>::type>(args)...);
      call.done(outputs_of(y));
      return y;
    } catch (const OutOfMemory& error) {
      fail_for(label, error);
    }
  };
}

void bind_hooks(py::module_& m);

}  // namespace renga::python
