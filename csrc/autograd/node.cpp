#include "autograd/node.h"

#include <algorithm>

#include "autograd/accumulate.h"
#include "autograd/gradient_place.h"

namespace renga {

std::unique_ptr<CallSite> (*find_call_site)() = nullptr;

namespace {

// Nodes whose turn to be destroyed has come, on this thread. While the list is being worked off,
// a destructor only adds to it; so the depth of the stack does not grow with that of the graph.
thread_local std::vector<Ref<Node>>* doomed = nullptr;

// The node whose backward() runs on this thread, for Saved.
thread_local Node* current_node = nullptr;

class CurrentNode {
 public:
  explicit CurrentNode(Node* node) : before_(std::exchange(current_node, node)) {}
  ~CurrentNode() { current_node = before_; }

 private:
  Node* before_;
};

class ClosureNode final : public Node {
 public:
  ClosureNode(const char* name, std::initializer_list<Edge> edges) : name_(name) {
    closures_.reserve(edges.size());
    for (const Edge& edge : edges) closures_.push_back(std::move(edge.closure));
  }

  std::string label() const override { return name_; }

  void backward(std::span<const Variable> gys, std::span<const int> wanted,
                std::span<Variable> gxs) override {
    const CurrentNode scope(this);
    for (int i : wanted) {
      if (!closures_[i]) continue;
      const GradientOf target(*inputs[i], gxs[i]);
      gxs[i] = add_gradients(gxs[i], (*closures_[i])(gys[0]));
    }
  }

  void unchain() override {
    Node::unchain();
    closures_.clear();
  }

 private:
  const char* name_;
  SmallVector<std::unique_ptr<Closure>> closures_;
};

class JointNode final : public Node {
 public:
  JointNode(const char* name, BackwardAll back) : name_(name), back_(std::move(back)) {}

  std::string label() const override { return name_; }

  void backward(std::span<const Variable> gys, std::span<const int> wanted,
                std::span<Variable> gxs) override {
    const CurrentNode scope(this);
    const std::vector<Variable> found = back_(gys, wanted);
    for (int i : wanted) gxs[i] = add_gradients(gxs[i], found[i]);
  }

  void unchain() override {
    Node::unchain();
    back_ = nullptr;
  }

 private:
  const char* name_;
  BackwardAll back_;
};

}  // namespace

void release_later(Ref<Node> node) {
  if (doomed != nullptr) {
    doomed->push_back(std::move(node));
    return;
  }
  std::vector<Ref<Node>> list;
  doomed = &list;
  node = nullptr;
  while (!list.empty()) {
    const Ref<Node> next = std::move(list.back());
    list.pop_back();
  }
  doomed = nullptr;
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
      std::any_of(edges.begin(), edges.end(), [](const Edge& e) { return e.closure != nullptr; });
  if (!needed) return result;
  auto node = make_ref<ClosureNode>(name, edges);
  node->inputs.reserve(edges.size());
  for (const Edge& e : edges) node->add_input(e.x);
  node->connect({}, {&result, 1});
  return result;
}

std::vector<Variable> record_all(const char* name, std::span<const Array> ys,
                                 std::span<const Variable> xs, BackwardAll back) {
  std::vector<Variable> results;
  results.reserve(ys.size());
  for (const Array& y : ys) results.emplace_back(y);
  if (backprop_enabled() && any_requires_grad(xs)) {
    make_ref<JointNode>(name, std::move(back))->connect(xs, results);
  }
  return results;
}

Variable Node::output(int index, const Array& array) {
  VariableNode* vertex = outputs[index];
  if (vertex != nullptr) {
    // The Variable that somebody holds stays the vertex's own: its array may be another by now.
    VariableBody* theirs = vertex->variable;
    Variable again(array, Ref<VariableNode>(vertex));
    if (theirs != nullptr) vertex->variable = theirs;
    return again;
  }
  // Everybody forgot this output; it enters the graph again because a second derivative needs it.
  Variable again(array);
  vertex = again.node().get();
  vertex->creator = Ref<Node>(this);
  vertex->output_index = index;
  vertex->requires_grad = true;
  outputs[index] = vertex;
  return again;
}

Variable Saved::get(int index) const {
  return backprop_enabled() ? current_node->output(index, array_) : Variable(array_);
}

bool any_requires_grad(std::span<const Variable> xs) {
  return std::any_of(xs.begin(), xs.end(), [](const Variable& x) { return x.requires_grad(); });
}

}  // namespace renga
