// Node: an applied operation in the graph, and record(), which adds it.
#pragma once

#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "autograd/gradient_sink.h"

namespace renga {

// Where in the user's program an operation was called. Set by the binding.
class CallSite : public SmallObject {
 public:
  virtual ~CallSite() = default;
  virtual std::string describe() const = 0;
};
extern std::unique_ptr<CallSite> (*find_call_site)();

class Node : public RefCounted {
 public:
  virtual std::string label() const = 0;

  // Hands the gradient of input wanted[i], given the outputs' gradients, to `to[i]`, for each i.
  // `gys` are undefined where an output has no gradient.
  virtual void backward(std::span<const Variable> gys, std::span<const int> wanted,
                        std::span<GradientSink> to) = 0;

  // Appends an input; the node's rank stays above the rank of every input.
  void add_input(const Variable& x);
  // Appends the inputs and sets this node as the creator of `ys`.
  void connect(std::span<const Variable> xs, std::span<Variable> ys);
  void forget_output(int index) { outputs[index] = nullptr; }
  // Output `index` as a Variable of the graph, over the array that the caller kept.
  Variable output(int index, const Array& array);
  // Drops the inputs, and with them the history before this node.
  virtual void unchain();
  // Frees what was saved for backward(), which fails from then on.
  virtual void free_saved() {}
  // Whether backward() computes the gradients of the inputs, of one output, one by one.
  virtual bool has_separate_gradients() const { return false; }

  SmallVector<Ref<VariableNode>> inputs;
  SmallVector<VariableNode*> outputs;  // not owned; nullptr once the output was freed
  int rank = 0;
  std::unique_ptr<CallSite> call_site;
};

// Destroys `node` without recursing into the chain of nodes before it, whatever its length.
void release_iteratively(Ref<Node> node);

// The vector-Jacobian product (VJP) of an operation with respect to one input: gy -> gx. It is
// written with operations, so that it can be differentiated again. An undefined gx has been handed
// to the sink already.
class Vjp : public SmallObject {
 public:
  virtual ~Vjp() = default;
  virtual Variable operator()(const Variable& gy, GradientSink& to) = 0;
};

// An input of an operation with its VJP, a function of gy or of gy and the sink. It is stored, and
// with it what it captured, only where a gradient can be requested. An undefined input is left to
// the operation to refuse.
struct Edge {
  template <class Function>
  Edge(const Variable& x, Function&& function) : x(x) {
    if (!backprop_enabled() || !x.defined() || !x.requires_grad()) return;
    struct Holder final : Vjp {
      explicit Holder(Function&& f) : f(std::forward<Function>(f)) {}
      Variable operator()(const Variable& gy, GradientSink& to) override {
        if constexpr (std::is_invocable_v<Function, const Variable&, GradientSink&>) {
          return f(gy, to);
        } else {
          return f(gy);
        }
      }
      std::decay_t<Function> f;
    };
    vjp = std::make_unique<Holder>(std::forward<Function>(function));
  }
  // An input without a gradient.
  Edge(const Variable& x, std::nullptr_t) : x(x) {}

  const Variable& x;
  mutable std::unique_ptr<Vjp> vjp;
};

// A Variable over `y`, the output of operation `name` (a literal: the pointer is stored).
Variable record(const char* name, const Array& y, std::initializer_list<Edge> edges);

// record_all() records several outputs, with one VJP for all inputs. The VJP gets the gradients of
// all outputs (undefined where there is none), the indices of the inputs whose gradients are wanted
// and the operation itself, and returns one gradient per input (undefined for the others).
using JointVjp =
    std::function<std::vector<Variable>(std::span<const Variable>, std::span<const int>, Node&)>;
std::vector<Variable> record_all(const char* name, std::span<const Array> ys,
                                 std::span<const Variable> xs, JointVjp vjp);

// An output that its own VJP needs. Capturing the Variable would create a reference cycle, so this
// captures the array and looks the graph node up.
class Saved {
 public:
  explicit Saved(const Array& array) : array_(array) {}
  // Returns output `index` of its operation.
  Variable of(Node& node, int index = 0) const;

 private:
  Array array_;
};

// Whether an operation on these inputs is recorded.
bool any_requires_grad(std::span<const Variable> xs);

}  // namespace renga
