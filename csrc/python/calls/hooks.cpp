#include "python/calls/hooks.h"

#include "autograd/backward.h"
#include "python/graph.h"
#include "python/interpreter.h"

namespace renga::python {
namespace {

// What hooks see of an operation of the core in the forward pass.
struct Call {
  const char* label;
  py::tuple arguments;            // as Python passed them, with defaults
  std::int64_t in_bytes;          // of the inputs, of which hooks see bfloat16 ones as float32
  std::vector<Variable> outputs;  // once it has run
};

template <class... Args>
void call_hooks(const char* method, const Args&... args) {
  // A copy, as a hook may leave the dict while it runs.
  const py::list hooks = py::handle(function_hooks).attr("values")();
  for (const py::handle hook : hooks) hook.attr(method)(args...);
}

py::object array_or_none(const Variable& x) {
  return x.defined() ? python_array(*x.body()) : py::none();
}

py::tuple arrays_of(std::span<const Variable> xs) {
  py::tuple arrays(xs.size());
  for (std::size_t i = 0; i < xs.size(); ++i) arrays[i] = array_or_none(xs[i]);
  return arrays;
}

void observe_backward(Node& node, std::span<const Variable> gys, bool done) {
  py::tuple in_data(node.inputs.size());
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const auto& kept = node.inputs[i]->retained;
    in_data[i] = kept ? py::cast(*kept) : py::none();
  }
  call_hooks(done ? "backward_postprocess" : "backward_preprocess", python_node(Ref<Node>(&node)),
             in_data, arrays_of(gys));
}

std::int64_t bytes_of(std::span<const Variable> xs) {
  std::int64_t bytes = 0;
  for (const Variable& x : xs) {
    if (x.defined()) bytes += x.size() * size_of(x.dtype());
  }
  return bytes;
}

void set_function_hooks(const std::optional<py::dict>& hooks) {
  static thread_local ThreadReference kept;
  function_hooks = hooks ? hooks->ptr() : nullptr;
  kept.set(hooks ? py::object(*hooks) : py::object());
  pass_context().observer = hooks ? &observe_backward : nullptr;
}

}  // namespace

void fail_for(const char* label, const OutOfMemory& error) {
  const std::string text = error.what(), name = std::string(label) + ": ";
  throw OutOfMemory(text.starts_with(name) ? text : name + text);
}

HookedCall::HookedCall(const char* label, const std::vector<Variable>& xs, py::tuple arguments)
    : call_(py::cast(Call{label, std::move(arguments), bytes_of(xs), {}})),
      in_data_(arrays_of(xs)) {
  call_hooks("forward_preprocess", call_, in_data_);
}

void HookedCall::done(const std::vector<Variable>& ys) const {
  if (function_hooks == nullptr) return;
  // Hooks measure each operation, so none waits for the next one.
  for (const Variable& y : ys) {
    if (y.defined()) y.array();
  }
  call_.cast<Call&>().outputs = ys;
  call_hooks("forward_postprocess", call_, in_data_);
}

void bind_hooks(py::module_& m) {
  py::class_<Call>(m, "Call", "An operation of the core in the forward pass.")
      .def_property_readonly("label", [](const Call& c) { return c.label; })
      .def_property_readonly("inputs", [](const Call&) { return py::none(); })
      .def_property_readonly("arguments", [](const Call& c) { return c.arguments; })
      .def_readonly("in_bytes", &Call::in_bytes)
      .def_property_readonly("results",
                             [](const Call& c) {
                               py::tuple results(c.outputs.size());
                               for (std::size_t i = 0; i < c.outputs.size(); ++i) {
                                 results[i] = python_variable(c.outputs[i]);
                               }
                               return results;
                             })
      .def_property_readonly("outputs",
                             [](const Call& c) {
                               py::tuple references(c.outputs.size());
                               for (std::size_t i = 0; i < c.outputs.size(); ++i) {
                                 references[i] = reference_to(c.outputs[i].node());
                               }
                               return references;
                             })
      .def_property_readonly("rank", [](const Call&) { return 0; });
  m.def("set_function_hooks", &set_function_hooks, py::arg("hooks"),
        "Makes the values of a dict the function hooks of this thread; None for no hooks.");
}

}  // namespace renga::python
