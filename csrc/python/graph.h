// Functions written in Python, as nodes of the graph.
#pragma once

#include "python/variable.h"

namespace renga::python {

// The Python FunctionNode behind a node, the node itself for the core's operations, None for none.
py::object python_node(const Ref<Node>& node);
// Visits the Python functions in the graph behind a vertex that nothing but this graph keeps alive,
// as a type's tp_traverse does.
int traverse_graph(const Ref<VariableNode>& vertex, visitproc visit, void* arg);
// A vertex as Chainer shows outputs: a callable that gives it, or None if it is gone.
py::object reference_to(const Ref<VariableNode>& vertex);
// Makes a Python FunctionNode (or nothing, for None) the creator of a vertex.
void set_creator(VariableNode& vertex, py::handle function);

}  // namespace renga::python
