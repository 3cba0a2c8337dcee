#include "python/graph.h"

#include <pybind11/functional.h>
#include <pybind11/stl.h>

#include <sstream>

#include "autograd/backward.h"
#include "python/interpreter.h"

namespace renga::python {
namespace {

// The reference of a Python FunctionNode to its node. Not owning: the node owns the function.
struct NodeLink {
  Node* node = nullptr;
};

py::tuple tuple_of(std::span<const Variable> xs) {
  py::tuple t(xs.size());
  for (std::size_t i = 0; i < xs.size(); ++i) t[i] = python_variable(xs[i]);
  return t;
}

// A node whose backward is a Python object's backward_accumulate().
class PythonNode final : public Node {
 public:
  explicit PythonNode(py::object function)
      : function_(std::move(function)), link_(std::make_shared<NodeLink>()) {
    link_->node = this;
    function_.attr("_link") = link_;
  }

  ~PythonNode() override {
    const GilAcquire lock;
    link_->node = nullptr;
    function_ = py::object();
  }

  std::string label() const override { return py::str(function_.attr("label")); }
  const py::object& function() const { return function_; }

  void backward(std::span<const Variable> gys, std::span<const int> wanted,
                std::span<GradientSink> to) override {
    py::tuple targets(wanted.size()), sums(wanted.size());
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      targets[i] = wanted[i];
      sums[i] = python_variable(to[i].take());
    }
    const py::tuple gradients = accumulate(targets, tuple_of(gys), sums);
    if (gradients.size() != wanted.size()) {
      fail<std::invalid_argument>(label(), ": expected ", wanted.size(),
                                  " gradients from backward, got ", gradients.size());
    }
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      if (!gradients[i].is_none()) to[i].add(gradients[i].cast<Variable>());
    }
  }

 private:
  py::tuple accumulate(const py::tuple& targets, const py::tuple& gys, const py::tuple& sums) {
    try {
      return py::tuple(function_.attr("backward_accumulate")(targets, gys, sums));
    } catch (py::error_already_set& error) {
      // The Python exception propagates with a note that names the call site of the forward pass.
      if (py::hasattr(error.value(), "add_note")) {
        std::string note = "in the backward of " + label();
        if (call_site) note += ", called at " + call_site->describe();
        error.value().attr("add_note")(note);
      }
      throw;
    }
  }

  py::object function_;
  std::shared_ptr<NodeLink> link_;
};

py::tuple output_references(const Node& node) {
  py::tuple references(node.outputs.size());
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    references[i] = reference_to(Ref<VariableNode>(node.outputs[i]));
  }
  return references;
}

py::tuple record_python(const py::object& function, const std::vector<Variable>& xs,
                        const std::vector<Array>& arrays) {
  std::vector<Variable> ys;
  for (const Array& y : arrays) ys.emplace_back(y);
  if (backprop_enabled() && any_requires_grad(xs)) {
    make_ref<PythonNode>(function)->connect(xs, ys);
  }
  return tuple_of(ys);
}

// The main thread's context is destroyed after the interpreter, which then cannot free the
// function.
int add_python_hook(const py::function& hook) {
  const std::shared_ptr<PyObject> held(hook.inc_ref().ptr(), [](PyObject* object) {
    if (Py_IsInitialized()) release(object);
  });
  return pass_context().add_hook([held](const Variable& leaf) {
    const GilAcquire lock;
    py::reinterpret_borrow<py::function>(held.get())(leaf);
  });
}

void bind_nodes(py::module_& m) {
  py::class_<NodeLink, std::shared_ptr<NodeLink>>(m, "NodeLink")
      .def_property_readonly("inputs",
                             [](const NodeLink& l) -> py::object {
                               return l.node ? py::tuple(py::cast(l.node->inputs))
                                             : py::object(py::none());
                             })
      .def_property_readonly("outputs",
                             [](const NodeLink& l) -> py::object {
                               return l.node ? py::object(output_references(*l.node)) : py::none();
                             })
      .def_property_readonly("rank", [](const NodeLink& l) { return l.node ? l.node->rank : 0; })
      .def_property_readonly("call_site",
                             [](const NodeLink& l) -> std::optional<std::string> {
                               if (!l.node || !l.node->call_site) return std::nullopt;
                               return l.node->call_site->describe();
                             })
      .def("get_output",
           [](const NodeLink& l, int index, const Array& array) {
             require<std::runtime_error>(l.node != nullptr,
                                         "get_output: expected a function of a living graph");
             require<std::out_of_range>(
                 index >= 0 && index < static_cast<int>(l.node->outputs.size()),
                 "get_output: expected an index below ", l.node->outputs.size(), ", got ", index);
             return l.node->output(index, array);
           })
      .def("unchain", [](const NodeLink& l) {
        if (l.node) l.node->unchain();
      });
  py::class_<Node, Ref<Node>>(m, "Node", "An operation of the core in the graph.")
      .def_property_readonly("label", &Node::label)
      .def_readonly("rank", &Node::rank)
      .def_property_readonly("inputs", [](const Node& n) { return py::tuple(py::cast(n.inputs)); })
      .def_property_readonly("outputs", &output_references)
      .def_property_readonly("call_site",
                             [](const Node& n) -> std::optional<std::string> {
                               if (!n.call_site) return std::nullopt;
                               return n.call_site->describe();
                             })
      .def("unchain", &Node::unchain);
}

Variable variable_of(VariableNode& node) {
  if (node.variable != nullptr) return Variable(Ref<VariableBody>(node.variable));
  return Variable(node.retained ? *node.retained : Array(), Ref<VariableNode>(&node));
}

void bind_variable_nodes(py::module_& m) {
  py::class_<VariableNode, Ref<VariableNode>> c(m, "VariableNode", py::dynamic_attr());
  c.def_property(
      "creator_node", [](const VariableNode& n) { return python_node(n.creator); },
      [](VariableNode& n, py::handle f) { set_creator(n, f); });
  c.def_property_readonly("shape", [](const VariableNode& n) { return n.shape; });
  c.def_property_readonly("dtype", [](const VariableNode& n) { return n.dtype; });
  c.def_property_readonly(
      "nbytes", [](const VariableNode& n) { return n.shape.product() * size_of(n.dtype); },
      "Bytes of the array in the core, where an element of bfloat16 takes 2.");
  c.def_property_readonly("rank", &VariableNode::rank);
  c.def_readonly("stage", &VariableNode::stage);
  c.def_readwrite("requires_grad", &VariableNode::requires_grad);
  c.def_property_readonly("name", [](const VariableNode& n) -> py::object {
    if (n.name.empty()) return py::none();
    return py::str(n.name);
  });
  c.def_property_readonly("data",
                          [](const VariableNode& n) { return n.retained ? *n.retained : Array(); });
  c.def_property_readonly(
      "grad_var", [](const VariableNode& n) { return n.variable ? n.variable->grad : Variable(); });
  c.def_property_readonly("grad", [](const VariableNode& n) -> py::object {
    return n.variable ? python_grad(*n.variable) : py::none();
  });
  c.def("get_variable", &variable_of);
  c.def("get_variable_or_none", [](const VariableNode& n) -> Variable {
    return n.variable ? Variable(Ref<VariableBody>(n.variable)) : Variable();
  });
  c.def_property_readonly(
      "is_in_python",
      [](const VariableNode& n) {
        const auto* type = py::detail::get_type_info(typeid(VariableBody));
        return n.variable && py::detail::get_object_handle(n.variable, type);
      },
      "Whether the program has the variable, which the graph may keep alone.");
  c.def("retain_data", [](VariableNode& n) {
    require<std::runtime_error>(n.variable != nullptr,
                                "retain_data: expected a living variable, but it was freed");
    known_metadata(*n.variable);
    n.retained = std::make_unique<Array>(n.variable->array());
  });
  c.def("unchain", &VariableNode::unchain);
  // Several Python objects may stand for one node; they compare equal.
  c.def("__eq__", [](const VariableNode& a, py::handle b) {
    return py::isinstance<VariableNode>(b) && &a == b.cast<VariableNode*>();
  });
  c.def("__hash__",
        [](const VariableNode& n) { return reinterpret_cast<std::uintptr_t>(&n) >> 4; });
}

void bind_pass_context(py::module_& m) {
  py::class_<PassContext>(m, "PassContext");
  m.def(
      "extra_root",
      [](const std::string& name) -> std::optional<std::pair<Variable, Variable>> {
        const auto& roots = pass_context().extra_roots;
        const auto found = roots.find(name);
        if (found == roots.end()) return std::nullopt;
        return std::pair(found->second.output, found->second.input);
      },
      py::arg("name"), "The output and input of set_extra_root; None once a pass has taken them.");
  m.def(
      "set_extra_root",
      [](const std::string& name, const Variable& output, const Variable& input) {
        pass_context().extra_roots.insert_or_assign(name, ExtraRoot{output, input});
      },
      py::arg("name"), py::arg("output"), py::arg("input"),
      "Has this thread's next backward pass start from `output`, too, and reach `input`. Another "
      "root of the name is replaced.");
  m.def("add_gradient_ready_hook", &add_python_hook, py::arg("hook"),
        "Calls hook(leaf) when a leaf's gradient is complete; returns a handle.");
  m.def(
      "remove_gradient_ready_hook", [](int handle) { pass_context().hooks.erase(handle); },
      py::arg("handle"));
  m.def(
      "set_gradient_buffers",
      [](const std::vector<Variable>& leaves, const std::vector<Array>& arrays) {
        std::unordered_map<const VariableNode*, Array> buffers;
        for (std::size_t i = 0; i < leaves.size(); ++i) {
          buffers.emplace(leaves[i].node().get(), arrays.at(i));
        }
        pass_context().buffers = GradientBuffers(std::move(buffers));
      },
      py::arg("leaves"), py::arg("arrays"),
      "Arrays into which this thread's backward() may write the first gradients of these leaves.");
  py::class_<PostponedGradients>(m, "PostponedGradients",
                                 "Gradients of leaves that backward() has left out for later.")
      .def(py::init<>())
      .def("set_urgent", &PostponedGradients::set_urgent, py::arg("leaves"),
           "The leaves whose gradients the next passes do not leave out.")
      .def(
          "compute", [](PostponedGradients& waiting) { waiting.compute(pass_context()); },
          "Adds them to the gradients of their leaves.")
      .def("__len__", &PostponedGradients::size);
  m.def(
      "postpone_gradients",
      [](std::optional<PostponedGradients*> to) {
        pass_context().postponed = to.value_or(nullptr);
      },
      py::arg("to"),
      "Where this thread's backward() leaves gradients of leaves, until None is given. It leaves "
      "out neither those of leaves that the graph reads several times, nor any in passes that are "
      "recorded or nested, or whose hooks are called when gradients are complete. The caller keeps "
      "the object until then.");
  m.def(
      "free_propagated_graphs",
      [](const py::list& leaves) {
        std::vector<Variable> variables;  // with those that have no array yet
        for (const py::handle leaf : leaves) {
          variables.emplace_back(Ref<VariableBody>(variable_body(leaf.ptr())));
        }
        free_propagated_graphs(variables);
      },
      py::arg("leaves"),
      "Frees what only losses keep alive from which backward() gave gradients to these leaves.");
}

}  // namespace

PassContext& pass_context() { return of_thread<PassContext>("renga.PassContext"); }

int traverse_graph(const Ref<VariableNode>& root, visitproc visit, void* arg) {
  // Bounds the time of a collection; cycles through a longer graph may not be collected.
  constexpr std::size_t max_nodes = 1000;
  std::vector<const VariableNode*> queue{root.get()};
  for (std::size_t i = 0; i < queue.size() && i < max_nodes; ++i) {
    // Nodes with several owners are skipped: the collector would count their references twice.
    if (queue[i]->use_count() > 1 || !queue[i]->creator || queue[i]->creator->use_count() > 1)
      continue;
    const Node& node = *queue[i]->creator;
    if (const auto* python = dynamic_cast<const PythonNode*>(&node)) {
      Py_VISIT(python->function().ptr());
    }
    for (const auto& x : node.inputs) queue.push_back(x.get());
  }
  return 0;
}

py::object python_node(const Ref<Node>& node) {
  if (!node) return py::none();
  if (const auto* python = dynamic_cast<const PythonNode*>(node.get())) return python->function();
  return py::cast(node);
}

py::object reference_to(const Ref<VariableNode>& node) {
  return py::cpp_function([node] { return node; });
}

void warn_without_gradient(const Variable& y, int stack_level) {
  if (known_metadata(*y.body()).size() <= 1 || y.body()->grad.defined()) return;
  std::ostringstream text;
  text << "backward: nothing gets a gradient from a variable of shape " << y.shape()
       << " without one: set y.grad, or make it a single number by F.sum(y) or F.mean(y)";
  if (PyErr_WarnEx(PyExc_UserWarning, text.str().c_str(), stack_level) < 0) {
    throw py::error_already_set();
  }
}

void set_creator(VariableNode& node, py::handle function) {
  node.unchain();
  if (function.is_none()) return;
  if (!py::hasattr(function, "_link")) {
    throw py::type_error("creator: expected a FunctionNode or None, got " +
                         py::str(py::type::of(function)).cast<std::string>());
  }
  const auto link = function.attr("_link").cast<std::shared_ptr<NodeLink>>();
  require<std::runtime_error>(link && link->node, "creator: expected a function that was applied");
  node.creator = Ref<Node>(link->node);
  node.output_index = static_cast<int>(link->node->outputs.size());
  node.requires_grad = true;
  link->node->outputs.push_back(&node);
}

void bind_graph(py::module_& m) {
  bind_nodes(m);
  bind_variable_nodes(m);
  m.def(
      "leaves_before",
      [](const std::vector<Variable>& ys) {
        std::vector<Ref<VariableNode>> roots;
        for (const Variable& y : ys) roots.push_back(y.node("leaves_before"));
        return leaves_before(roots);
      },
      py::arg("ys"),
      "The nodes of the leaves that require a gradient, among variables and before them.");
  m.def("record_python", &record_python, py::arg("function"), py::arg("inputs"), py::arg("outputs"),
        "Variables over the outputs of a Python FunctionNode, in the graph if an input is.");
  m.def(
      "backward",
      [](const std::vector<Variable>& ys, bool retain_grad, bool create_graph,
         std::optional<double> loss_scale) {
        for (const Variable& y : ys) warn_without_gradient(y, 2);
        backward(ys, {retain_grad, create_graph, loss_scale}, pass_context());
      },
      py::arg("outputs"), py::arg("retain_grad") = false, py::arg("enable_double_backprop") = false,
      py::arg("loss_scale") = py::none());
  m.def(
      "grad",
      [](const std::vector<Variable>& ys, const std::vector<Variable>& xs,
         const std::vector<std::optional<Variable>>& gys,
         const std::vector<std::optional<Variable>>& gxs, bool set_grad, bool retain_grad,
         bool create_graph, std::optional<double> loss_scale) {
        const auto plain = [](const std::vector<std::optional<Variable>>& given) {
          std::vector<Variable> all;
          for (const auto& g : given) all.push_back(g.value_or(Variable()));
          return all;
        };
        GradOptions options;
        options.set_grad = set_grad;
        options.retain_grad = retain_grad;
        options.create_graph = create_graph;
        options.loss_scale = loss_scale;
        return grad(ys, xs, plain(gys), plain(gxs), options, pass_context());
      },
      py::arg("outputs"), py::arg("inputs"), py::arg("grad_outputs"), py::arg("grad_inputs"),
      py::arg("set_grad") = false, py::arg("retain_grad") = false,
      py::arg("enable_double_backprop") = false, py::arg("loss_scale") = py::none());
  bind_pass_context(m);
}

}  // namespace renga::python
