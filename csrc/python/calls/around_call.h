// Two things surround the calls of operations: a handler, which may replace a call's operands or
// have only the shapes of its results computed, and function hooks, which see what is computed.
#pragma once

#include <functional>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "devices/allocator.h"
#include "python/calls/call_variables.h"
#include "python/calls/options.h"
#include "python/variable.h"

namespace renga::python {

// The handler of threads that have none of their own; nullptr for none.
inline PyObject* default_handler = nullptr;

// A thread has set these around its calls.
struct CallContext {
  py::object handler;  // a function of a Call
  py::object hooks;    // function hooks by name, a dict

  CallContext() = default;
  ~CallContext();
  CallContext(const CallContext&) = delete;
  CallContext& operator=(const CallContext&) = delete;
};
// This thread's; nullptr where it has set nothing.
inline thread_local const CallContext* call_context = nullptr;

// Whether something surrounds the calls of this thread.
inline bool is_surrounded() { return call_context != nullptr || default_handler != nullptr; }

// A call of an operation, which its handler and hooks see.
class Call {
 public:
  // Computes with what stands for its arguments, which it passes to begin() if they have elements,
  // and passes the results to end().
  using Compute = std::function<void(Call&)>;

  Call(const char* label, std::vector<Variable> operands);

  // Calls the handler and the hooks around `compute`.
  static void surround(Call call, const Compute& compute);

  // Computes with the operands, or, `with_elements` off, only the shapes of the results.
  void run(bool with_elements);
  bool has_elements() const { return has_elements_; }
  void begin(py::tuple given);
  void end(std::vector<Variable> ys);

  // Returns what stands for an argument, and is called for each argument in order.
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

  const char* label;
  std::vector<Variable> operands;  // the Variables among its arguments, which a handler may replace
  py::tuple arguments;             // once it computes elements, with defaults
  std::vector<Variable> results;   // once it has run

 private:
  const Compute* compute_ = nullptr;  // until it runs
  std::size_t operand_count_, next_operand_ = 0;
  bool has_elements_ = true;
  std::optional<py::tuple> hooked_arrays_;  // of the operands, while hooks surround it
};

// function(args...) within this thread's context.
template <class Result, class Function, class... Args>
Result call_surrounded(const char* label, Function function, const Args&... args) {
  std::vector<Variable> xs;
  (append_variables(xs, args), ...);
  std::optional<Result> y;
  Call::surround({label, std::move(xs)}, [&](Call& call) {
    // Braces evaluate from left to right.
    const std::tuple<std::decay_t<decltype(call(args))>...> given{call(args)...};
    if (call.has_elements()) {
      call.begin(std::apply([](const auto&... each) { return py::make_tuple(each...); }, given));
    }
    y.emplace(std::apply(function, given));
    call.end(outputs_of(*y));
  });
  return *std::move(y);
}

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

// The function within this thread's context. Prefixes the message of OutOfMemory with its name.
template <class Result, class... Args>
auto surrounded(const char* label, Result (*function)(Args...)) {
  return [label, function](typename ReadAs<Args>::type... args) -> Result {
    try {
      if (!is_surrounded()) [[likely]]
        return function(std::forward<typename ReadAs<Args>::type>(args)...);
      return call_surrounded<Result>(label, function, args...);
    } catch (const OutOfMemory& error) {
      fail_for(label, error);
    }
  };
}

void bind_calls(py::module_& m);

}  // namespace renga::python
