// Python functions as nodes of the graph.
#pragma once

#include "autograd/pass_context.h"
#include "python/variable.h"

namespace renga::python {

// Returns what this thread wants of its backward passes.
PassContext& pass_context();
// The Python FunctionNode of a node, the node itself for operations of the core, or None.
py::object python_node(const Ref<Node>& node);
// tp_traverse over the Python functions in the graph before `root` that only this graph owns.
int traverse_graph(const Ref<VariableNode>& root, visitproc visit, void* arg);
// Returns what Chainer's FunctionNode.outputs holds: a callable that returns the node, or None if
// it was freed.
py::object reference_to(const Ref<VariableNode>& node);
// Python's warning, at that level of its stack, if no backward pass can start from `y`.
void warn_without_gradient(const Variable& y, int stack_level);
// Sets a Python FunctionNode, or None, as the creator of a node.
void set_creator(VariableNode& node, py::handle function);

}  // namespace renga::python
