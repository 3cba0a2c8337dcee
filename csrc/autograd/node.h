// Node: an operation that was applied, and record(), by which operations enter the graph.
#pragma once

#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "autograd/variable.h"

namespace renga {

// Where in the user's program an operation was called. The binding knows how to find out.
class CallSite : public InSmallBlock {
 public:
  virtual ~CallSite() = default;
  virtual std::string describe() const = 0;
};
extern std::unique_ptr<CallSite> (*find_call_site)();

class Node : public RefCounted {
 public:
  virtual std::string label() const = 0;

  // Adds to `gxs[i]`, for each i in `wanted`, the gradient of input i given the outputs' gradients.
  // An undefined Variable stands for "no gradient"; entries of `gxs` not wanted stay as they are.
  virtual void backward(std::span<const Variable> gys, std::span<const int> wanted,
                        std::span<Variable> gxs) = 0;

  // The rank is above every input's.
  void add_input(const Variable& x);
  // Appends the inputs and makes `ys` come from this node.
  void connect(std::span<const Variable> xs, std::span<Variable> ys);
  void forget_output(int index) { outputs[index] = nullptr; }
  // Output `index`, whose array the caller kept, as a Variable of the graph.
  Variable output(int index, const Array& array);
  // Drops the inputs, and with them the history before this node.
  virtual void unchain();

  SmallVector<Ref<VariableNode>> inputs;
  SmallVector<VariableNode*> outputs;  // not owned; nullptr once nobody needs the output
  int rank = 0;
  std::unique_ptr<CallSite> call_site;
};

// Destroys `node` without recursing into the chain of nodes before it, however long that is.
void release_later(Ref<Node> node);

// The gradient of one input as a function of the output's, written with operations, so that it can
// be differentiated again.
class Closure : public InSmallBlock {
 public:
  virtual ~Closure() = default;
  virtual Variable operator()(const Variable& gy) = 0;
};

// An input of an operation with the way back to it. The closure, and with it what it captured, is
// built only where a gradient can be asked for.
struct Edge {
  template <class ToGx>
  Edge(const Variable& x, ToGx&& to_gx) : x(x) {
    if (!backprop_enabled() || !x.requires_grad()) return;
    struct Holder final : Closure {
      explicit Holder(ToGx&& f) : f(std::forward<ToGx>(f)) {}
      Variable operator()(const Variable& gy) override { return f(gy); }
      std::decay_t<ToGx> f;
    };
    closure = std::make_unique<Holder>(std::forward<ToGx>(to_gx));
  }
  // An input without a gradient.
  Edge(const Variable& x, std::nullptr_t) : x(x) {}

  const Variable& x;
  mutable std::unique_ptr<Closure> closure;
};

// The Variable over `y`, the output of operation `name` (a literal: the pointer is kept).
Variable record(const char* name, const Array& y, std::initializer_list<Edge> edges);

// The same for any number of inputs and outputs with one function back: it gets all the outputs'
// gradients (undefined where none came) and which inputs want theirs, and returns one per input
// (undefined for those not wanted).
using BackwardAll =
    std::function<std::vector<Variable>(std::span<const Variable>, std::span<const int>)>;
std::vector<Variable> record_all(const char* name, std::span<const Array> ys,
                                 std::span<const Variable> xs, BackwardAll back);

// An output that its own way back needs again. Holding the Variable itself would be a cycle, so it
// holds the array and finds the vertex anew.
class Saved {
 public:
  explicit Saved(const Array& array) : array_(array) {}
  // Only within the backward() of the node whose output `index` this is.
  Variable get(int index = 0) const;

 private:
  Array array_;
};

// Whether any of the variables makes an operation on them part of the graph.
bool any_requires_grad(std::span<const Variable> xs);

}  // namespace renga
