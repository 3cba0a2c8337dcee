#include "python/calls/around_call.h"

#include <pybind11/stl.h>

#include "autograd/backward.h"
#include "python/graph.h"
#include "python/interpreter.h"

namespace renga::python {
namespace {

py::object own_handler() { return call_context != nullptr ? call_context->handler : py::object(); }

py::object handler() {
  const py::object own = own_handler();
  return own ? own : py::reinterpret_borrow<py::object>(default_handler);
}

bool has_hooks() { return call_context != nullptr && call_context->hooks; }

template <class... Args>
void call_hooks(const char* method, const Args&... args) {
  if (!has_hooks()) return;
  // A copy, as a hook may leave the dict while it runs.
  const py::list hooks = call_context->hooks.attr("values")();
  for (const py::handle hook : hooks) hook.attr(method)(args...);
}

py::object array_or_none(const Variable& x) {
  return x.defined() ? python_array(*x.body()) : py::none();
}

template <class Variables, class Convert>
py::tuple each(const Variables& xs, const Convert& convert) {
  py::tuple converted(xs.size());
  for (std::size_t i = 0; i < xs.size(); ++i) converted[i] = convert(xs[i]);
  return converted;
}

void observe_backward(Node& node, std::span<const Variable> gys, bool done) {
  const auto retained = [](const auto& x) {
    return x->retained ? py::cast(*x->retained) : py::none();
  };
  call_hooks(done ? "backward_postprocess" : "backward_preprocess", python_node(Ref<Node>(&node)),
             each(node.inputs, retained), each(gys, array_or_none));
}

// In the core, where bfloat16 arrays are not the float32 ones that hooks see.
std::int64_t bytes_of(const std::vector<Variable>& xs) {
  std::int64_t bytes = 0;
  for (const Variable& x : xs) {
    if (x.defined()) bytes += x.size() * size_of(x.dtype());
  }
  return bytes;
}

void set_for_thread(py::object CallContext::*member, const std::optional<py::object>& object) {
  auto& context = of_thread<CallContext>("renga.CallContext");
  // The object of before is released last: it may run Python code, which makes calls.
  const py::object before = std::exchange(context.*member, object ? *object : py::object());
  call_context = context.handler || context.hooks ? &context : nullptr;
}

void set_around_call(const std::optional<py::object>& handler) {
  set_for_thread(&CallContext::handler, handler);
}

void set_default_around_call(const std::optional<py::object>& handler) {
  PyObject* const before = default_handler;
  default_handler = handler ? py::object(*handler).release().ptr() : nullptr;
  Py_XDECREF(before);
}

void set_function_hooks(const std::optional<py::dict>& hooks) {
  set_for_thread(&CallContext::hooks, hooks);
  pass_context().observer = hooks ? &observe_backward : nullptr;
}

// Keeps what an engine needs to know: whether a gradient is wanted.
Variable shape_of(const Variable& x) {
  if (x.device().is_meta()) return x;
  return Variable(to_device(x.metadata(), kMeta), x.requires_grad());
}

}  // namespace

CallContext::~CallContext() {
  if (call_context == this) call_context = nullptr;
}

void fail_for(const char* label, const OutOfMemory& error) {
  const std::string text = error.what(), name = std::string(label) + ": ";
  throw OutOfMemory(text.starts_with(name) ? text : name + text);
}

Call::Call(const char* label, std::vector<Variable> operands)
    : label(label), operands(std::move(operands)), operand_count_(this->operands.size()) {}

void Call::surround(Call made, const Compute& compute) {
  const py::object object = py::cast(std::move(made));
  Call& call = object.cast<Call&>();
  call.compute_ = &compute;
  // Python may keep the call, which ends here.
  struct End {
    const Compute*& compute;
    ~End() { compute = nullptr; }
  } const end{call.compute_};
  const py::object around = handler();
  if (!around) return call.run(true);
  around(object);
  require<std::runtime_error>(call.compute_ == nullptr, call.label,
                              ": expected a handler that runs the call, got one that does not");
}

void Call::run(bool with_elements) {
  require<std::runtime_error>(compute_ != nullptr, label,
                              ": expected one run, inside of a handler, got another one");
  require<std::runtime_error>(operands.size() == operand_count_, label, ": expected ",
                              operand_count_, " operands, got ", operands.size());
  has_elements_ = with_elements;
  try {
    (*std::exchange(compute_, nullptr))(*this);
  } catch (const OutOfMemory& error) {  // which a handler in Python would pass on as its own error
    fail_for(label, error);
  }
}

void Call::begin(py::tuple given) {
  arguments = std::move(given);
  if (!has_hooks()) return;
  hooked_arrays_ = each(operands, array_or_none);
  call_hooks("forward_preprocess", py::cast(this), *hooked_arrays_);
}

void Call::end(std::vector<Variable> ys) {
  results = std::move(ys);
  const auto arrays = std::exchange(hooked_arrays_, std::nullopt);
  if (!arrays || !has_hooks()) return;
  // Hooks measure each operation, so none waits for the next one.
  for (const Variable& y : results) {
    if (y.defined()) y.array();
  }
  call_hooks("forward_postprocess", py::cast(this), *arrays);
}

Variable Call::operator()(const Variable&) {
  const Variable& x = operands[next_operand_++];
  return has_elements_ ? x : shape_of(x);
}

std::vector<Variable> Call::operator()(const std::vector<Variable>& xs) {
  std::vector<Variable> all;
  for (const Variable& x : xs) all.push_back((*this)(x));
  return all;
}

Array Call::operator()(const Array& x) const {
  return has_elements_ || !x.defined() ? x : to_device(x, kMeta);
}

void bind_calls(py::module_& m) {
  py::class_<CallContext>(m, "CallContext", "What a thread has set around its calls.");
  const auto label = [](const Call& c) { return c.label; };
  const auto operands = [](const Call& c) { return each(c.operands, python_variable); };
  const auto results = [](const Call& c) { return each(c.results, python_variable); };
  const auto references = [](const Call& c) {
    return each(c.results, [](const Variable& y) { return reference_to(y.node()); });
  };
  py::class_<Call>(m, "Call", "A call of an operation of the core in the forward pass.")
      .def_property_readonly("label", label)
      .def_property("operands", operands,
                    [](Call& c, std::vector<Variable> xs) { c.operands = std::move(xs); })
      .def_readonly("arguments", &Call::arguments)
      .def_property_readonly("results", results)
      .def(
          "run", [](Call& c) { c.run(true); }, "Computes the results.")
      .def(
          "run_shapes", [](Call& c) { c.run(false); },
          "Computes the results without elements, which only have shapes and dtypes.")
      .def_property_readonly("inputs", [](const Call&) { return py::none(); })
      .def_property_readonly("in_bytes", [](const Call& c) { return bytes_of(c.operands); })
      .def_property_readonly("outputs", references)
      .def_property_readonly("rank", [](const Call&) { return 0; });
  m.def("set_around_call", &set_around_call, py::arg("handler"),
        "Has handler(call) called for each operation of this thread. It calls call.run(), after "
        "which there are call.results, or call.run_shapes(), and may replace call.operands before. "
        "None for no handler.");
  m.def("set_default_around_call", &set_default_around_call, py::arg("handler"),
        "Makes this the handler of threads that have none; None for no handler.");
  const auto or_none = [](py::handle handler) {
    return py::reinterpret_borrow<py::object>(handler ? handler : Py_None);
  };
  m.def(
      "around_call", [or_none] { return or_none(handler()); },
      "The handler around the calls of this thread; None for none.");
  m.def(
      "own_around_call", [or_none] { return or_none(own_handler()); },
      "The handler that this thread has set; None for none.");
  m.def(
      "default_around_call", [or_none] { return or_none(default_handler); },
      "The handler of threads that have none; None for none.");
  m.def("set_function_hooks", &set_function_hooks, py::arg("hooks"),
        "Makes the values of a dict the function hooks of this thread; None for no hooks.");
}

}  // namespace renga::python
