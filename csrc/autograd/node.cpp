#include "autograd/node.h"

#include <algorithm>

namespace renga {

std::unique_ptr<CallSite> (*find_call_site)() = nullptr;

namespace {

[[noreturn]] void fail_as_freed() {
  fail<std::runtime_error>(
      "backward: expected a graph that backward() has not propagated through before the parameters "
      "were updated: what it had saved was freed then. Run the forward pass again, or call the "
      "first backward() with retain_grad=True");
}

// One output and one VJP per input.
class VjpNode final : public Node {
 public:
  VjpNode(const char* name, std::initializer_list<Edge> edges) : name_(name) {
    vjps_.reserve(edges.size());
    for (const Edge& edge : edges) vjps_.push_back(std::move(edge.vjp));
  }

  std::string label() const override { return name_; }

  void backward(std::span<const Variable> gys, std::span<const int> wanted,
                std::span<GradientSink> to) override {
    if (vjps_.empty()) fail_as_freed();
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      if (const auto& vjp = vjps_[wanted[i]]) to[i].add((*vjp)(gys[0], to[i]));
    }
  }

  bool has_separate_gradients() const override { return true; }

  void unchain() override {
    Node::unchain();
    vjps_.clear();
  }

  void free_saved() override { vjps_.clear(); }

 private:
  const char* name_;
  SmallVector<std::unique_ptr<Vjp>> vjps_;
};

// Several outputs and one VJP for all inputs.
class JointNode final : public Node {
 public:
  JointNode(const char* name, JointVjp vjp) : name_(name), vjp_(std::move(vjp)) {}

  std::string label() const override { return name_; }

  void backward(std::span<const Variable> gys, std::span<const int> wanted,
                std::span<GradientSink> to) override {
    if (vjp_ == nullptr) fail_as_freed();
    const std::vector<Variable> gradients = vjp_(gys, wanted, *this);
    for (std::size_t i = 0; i < wanted.size(); ++i) to[i].add(gradients[wanted[i]]);
  }

  void unchain() override {
    Node::unchain();
    vjp_ = nullptr;
  }

  void free_saved() override { vjp_ = nullptr; }

 private:
  const char* name_;
  JointVjp vjp_;
};

}  // namespace

// A node takes its inputs with it when it is destroyed. Here they outlive it, and give up their
// creators before they go: the depth of the stack does not grow with the depth of the graph.
void release_iteratively(Ref<Node> node) {
  std::vector<Ref<Node>> list;
  while (true) {
    if (node->use_count() == 1) {
      auto inputs = std::move(node->inputs);
      node = nullptr;
      while (!inputs.empty()) {
        const Ref<VariableNode> x = std::move(inputs.back());
        inputs.pop_back();
        if (x->use_count() == 1 && x->creator) list.push_back(x->take_creator());
      }
    }
    if (list.empty()) return;
    node = std::move(list.back());
    list.pop_back();
  }
}

void Node::add_input(const Variable& x) {
  inputs.push_back(x.node());
  rank = std::max(rank, x.node()->rank());
}

void Node::connect(std::span<const Variable> xs, std::span<Variable> ys) {
  inputs.reserve(inputs.size() + xs.size());
  for (const Variable& x : xs) add_input(x);
  outputs.reserve(ys.size());
  for (std::size_t i = 0; i < ys.size(); ++i) {
    VariableNode* y = ys[i].node().get();
    y->creator = Ref<Node>(this);
    y->output_index = static_cast<int>(i);
    y->requires_grad = true;
    outputs.push_back(y);
  }
  if (find_call_site != nullptr) call_site = find_call_site();
}

void Node::unchain() {
  const Ref<Node> self(this);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i] != nullptr) outputs[i]->unchain();
  }
  inputs.clear();
}

Variable record(const char* name, const Array& y, std::initializer_list<Edge> edges) {
  Variable result(y);
  const bool needed =
      std::any_of(edges.begin(), edges.end(), [](const Edge& e) { return e.vjp != nullptr; });
  if (!needed) return result;
  auto node = make_ref<VjpNode>(name, edges);
  node->inputs.reserve(edges.size());
  for (const Edge& e : edges) node->add_input(e.x);
  node->connect({}, {&result, 1});
  return result;
}

std::vector<Variable> record_all(const char* name, std::span<const Array> ys,
                                 std::span<const Variable> xs, JointVjp vjp) {
  std::vector<Variable> results;
  results.reserve(ys.size());
  for (const Array& y : ys) results.emplace_back(y);
  if (backprop_enabled() && any_requires_grad(xs)) {
    make_ref<JointNode>(name, std::move(vjp))->connect(xs, results);
  }
  return results;
}

Variable Node::output(int index, const Array& array) {
  VariableNode* node = outputs[index];
  if (node != nullptr) {
    // A Variable that the user holds stays the node's variable: its array may have been replaced.
    VariableBody* const current = node->variable;
    Variable output(array, Ref<VariableNode>(node));
    if (current != nullptr) node->variable = current;
    return output;
  }
  // The output was freed; a second derivative needs it, so it enters the graph again.
  Variable output(array);
  node = output.node().get();
  node->creator = Ref<Node>(this);
  node->output_index = index;
  node->requires_grad = true;
  outputs[index] = node;
  return output;
}

Variable Saved::of(Node& node, int index) const {
  return backprop_enabled() ? node.output(index, array_) : Variable(array_);
}

bool any_requires_grad(std::span<const Variable> xs) {
  return std::any_of(xs.begin(), xs.end(), [](const Variable& x) { return x.requires_grad(); });
}

}  // namespace renga
