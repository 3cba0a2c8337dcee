// Variable: an array that remembers how it was computed.
//
//   Variable ──▶ VariableBody { array, node }      what the user holds
//                      │
//                      ▼
//               VariableNode { creator, rank }     the variable's node in the graph
//                      │
//                      ▼
//               Node { inputs: VariableNode… }     an applied operation (node.h)
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lazy/deferred.h"
#include "settings/settings.h"
#include "tensor/array.h"

namespace renga {

class Node;
class VariableBody;
class VariableNode;

// An ArrayCache is what an operation derives from a variable's array and validates itself, such as
// packed weights.
class ArrayCache : public RefCounted {
 public:
  // Frees its memory; called before the array is exposed to writers.
  virtual void clear() = 0;
};

// The binding's view of a variable's array: in Python, the numpy.ndarray over the same memory.
class HostView : public SmallObject {
 public:
  virtual ~HostView() = default;
  // Whether the variable is the only owner of the view and of the memory.
  virtual bool is_uniquely_referenced(const Storage& memory) const = 0;
};

// A reference to a variable's node that does not keep it alive.
struct WeakNode : RefCounted {
  explicit WeakNode(VariableNode* node) : node(node) {}
  VariableNode* node;  // nullptr once it was freed
};

// A backward pass, as the leaves know it to which it gave gradients.
class Propagation : public RefCounted {
 public:
  explicit Propagation(std::optional<double> loss_scale) : loss_scale(loss_scale) {}

  // A loss from which it started. Does not keep it alive.
  void add_loss(VariableNode& loss);
  // The losses of an earlier pass, to whose gradients it adds.
  void include(const Propagation& earlier);

  const std::optional<double> loss_scale;
  std::vector<Ref<WeakNode>> losses;

 private:
  const Propagation* included_ = nullptr;  // the last one; only compared
};

// A variable's node in the graph. It may outlive the variable and its array.
class VariableNode final : public RefCounted {
 public:
  ~VariableNode() override;

  Ref<Node> creator;
  int output_index = 0;  // which output of the creator this is
  bool requires_grad = true;
  Shape shape;
  Dtype dtype = Dtype::float32;
  std::string name;
  int stage = -1;                    // of a pipeline that computes it; -1: every process does
  std::unique_ptr<Array> retained;   // set by retain_data
  VariableBody* variable = nullptr;  // not owned; the variable, while it is alive
  Ref<WeakNode> weak;                // where there are weak references

  int rank() const;
  // Drops the creator and with it the history of this variable.
  void unchain();
  // Gives the creator up, which is left to the caller.
  Ref<Node> take_creator();
};

// A Variable is a shared handle, as a Python reference is. A default-constructed one is undefined:
// no gradient. What reads an undefined Variable throws std::invalid_argument, with the name of the
// calling function: that of the operation which was given it.
class Variable {
 public:
  Variable() = default;
  // A leaf.
  explicit Variable(const Array& array, bool requires_grad = false);
  Variable(const Array& array, Ref<VariableNode> node);
  explicit Variable(Ref<VariableBody> body) : body_(std::move(body)) {}

  bool defined() const { return static_cast<bool>(body_); }
  inline const Array& array(const char* caller = __builtin_FUNCTION()) const;
  inline const Ref<VariableNode>& node(const char* caller = __builtin_FUNCTION()) const;
  inline bool requires_grad(const char* caller = __builtin_FUNCTION()) const;
  // Shape, dtype and device; does not compute a deferred array.
  inline const Array& metadata(const char* caller = __builtin_FUNCTION()) const;
  const Shape& shape(const char* caller = __builtin_FUNCTION()) const {
    return metadata(caller).shape();
  }
  std::int64_t shape(int axis, const char* caller = __builtin_FUNCTION()) const {
    return metadata(caller).shape(axis);
  }
  int ndim(const char* caller = __builtin_FUNCTION()) const { return metadata(caller).ndim(); }
  std::int64_t size(const char* caller = __builtin_FUNCTION()) const {
    return metadata(caller).size();
  }
  Dtype dtype(const char* caller = __builtin_FUNCTION()) const { return metadata(caller).dtype(); }
  Device device(const char* caller = __builtin_FUNCTION()) const {
    return metadata(caller).device(caller);
  }
  const Ref<VariableBody>& body(const char* caller = __builtin_FUNCTION()) const {
    if (!body_) [[unlikely]]
      fail_as_undefined("a Variable", caller);
    return body_;
  }

 private:
  Ref<VariableBody> body_;
};

// A leaf's gradient is of all passes since it was cleared or set; or of none, as an update has used
// it and kept no sum to which passes could add; or of those since that update only.
enum class GradState { whole, spent, partial };

class VariableBody final : public RefCounted {
 public:
  VariableBody(const Array& array, Ref<VariableNode> node);
  ~VariableBody() override;

  const Array& array() const {
    if (deferred_) compute();
    return array_;
  }
  // Shape, strides, dtype and device; does not compute a deferred array.
  const Array& metadata() const { return array_; }
  // Defers the computation of the elements until array() is called.
  void defer(Ref<const Deferred> deferred);
  // The pending computation; nullptr once the elements are computed.
  const Deferred* deferred() const {
    return deferred_ && !deferred_->is_done() ? deferred_.get() : nullptr;
  }
  // The array, for code that changes its elements: what was derived from them is dropped, and
  // pending computations that read them run first.
  const Array& writable_array();
  // Replaces the array and drops the host view of the old one.
  void set_array(const Array& array);
  // Replaces the gradient, or clears it.
  void set_grad(const Variable& gx);
  // Takes note that a pass adds to the gradient.
  void note_added_grad() {
    if (grad_state == GradState::spent) grad_state = GradState::partial;
  }
  // Moves the variable to another graph node.
  void set_node(Ref<VariableNode> node);
  const Ref<VariableNode>& node() const { return node_; }
  // Whether no other object can write to the array before it is exposed again.
  bool is_exclusive() const {
    return host_view ? host_view->is_uniquely_referenced(*array_.storage()) : is_unshared(array_);
  }

  Variable grad;
  GradState grad_state = GradState::whole;
  std::unique_ptr<HostView> host_view;
  Ref<ArrayCache> cache;
  Ref<Propagation> pass;  // the last one that gave this leaf a gradient

 private:
  void compute() const;
  void drop_deferred() const;

  Array array_;
  mutable Ref<const Deferred> deferred_;
  Ref<VariableNode> node_;
};

const Array& Variable::array(const char* caller) const { return body(caller)->array(); }
const Array& Variable::metadata(const char* caller) const { return body(caller)->metadata(); }
const Ref<VariableNode>& Variable::node(const char* caller) const { return body(caller)->node(); }
bool Variable::requires_grad(const char* caller) const {
  return body(caller)->node()->requires_grad;
}

// The few operations that the engine needs. csrc/ops registers them at start-up, so that autograd
// does not depend on it.
struct Arithmetic {
  Variable (*add)(const Variable& a, const Variable& b) = nullptr;
  // sum += x, without a graph.
  void (*add_to)(const Array& sum, const Array& x) = nullptr;
  Variable (*cast)(const Variable& x, Dtype dtype) = nullptr;
  // A copy in new memory.
  Variable (*copy)(const Variable& x) = nullptr;
  // An array of the shape, dtype and device of `x` filled with `value`.
  Array (*full_like)(const Array& x, double value) = nullptr;
};
extern Arithmetic arithmetic;

// a + b, where an undefined Variable counts as zero.
Variable add_gradients(const Variable& a, const Variable& b);

}  // namespace renga
