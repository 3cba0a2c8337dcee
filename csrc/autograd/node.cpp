#include "autograd/node.h"

#include <algorithm>

#include "autograd/accumulate.h"
#include "autograd/deferred_gradients.h"
#include "autograd/gradient_buffer.h"
#include "autograd/thread_state.h"

namespace renga {

std::unique_ptr<CallSite> (*find_call_site)() = nullptr;

namespace {

// Sets the node whose backward() runs on this thread, for Saved.
class CurrentNode {
 public:
  explicit CurrentNode(Node* node) : previous_(std::exchange(thread_state.current_node, node)) {}
  ~CurrentNode() { thread_state.current_node = previous_; }
  CurrentNode(const CurrentNode&) = delete;
  CurrentNode& operator=(const CurrentNode&) = delete;

 private:
  Node* previous_;
};

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
                std::span<Variable> gxs) override {
    if (vjps_.empty()) fail_as_freed();
    const CurrentNode scope(this);
    for (int i : wanted) {
      if (!vjps_[i]) continue;
      GradientSums* const sums = sums_of(*inputs[i]);
      if (sums != nullptr && vjps_[i]->collect(*sums, gys[0])) continue;
      const GradientTarget target(*inputs[i], gxs[i]);
      gxs[i] = add_gradients(gxs[i], (*vjps_[i])(gys[0]));
    }
  }

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
                std::span<Variable> gxs) override {
    if (vjp_ == nullptr) fail_as_freed();
    const CurrentNode scope(this);
    const std::vector<Variable> gradients = vjp_(gys, wanted);
    for (int i : wanted) gxs[i] = add_gradients(gxs[i], gradients[i]);
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

// While the list is processed, destructors only append to it: the depth of the stack does not grow
// with the depth of the graph.
void release_iteratively(Ref<Node> node) {
  auto*& pending = thread_state.pending_release;
  if (pending != nullptr) {
    pending->push_back(std::move(node));
    return;
  }
  std::vector<Ref<Node>> list;
  pending = &list;
  node = nullptr;
  while (!list.empty()) {
    const Ref<Node> next = std::move(list.back());
    list.pop_back();
  }
  pending = nullptr;
}

bool has_separate_gradients(const Node& node) {
  return dynamic_cast<const VjpNode*>(&node) != nullptr;
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

Variable Saved::get(int index) const {
  return backprop_enabled() ? thread_state.current_node->output(index, array_) : Variable(array_);
}

bool any_requires_grad(std::span<const Variable> xs) {
  return std::any_of(xs.begin(), xs.end(), [](const Variable& x) { return x.requires_grad(); });
}

}  // namespace renga
