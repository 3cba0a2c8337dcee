// Variable: an array that remembers how it was computed.
//
//   Variable ──▶ VariableBody { array, node }      what the user holds
//                      │
//                      ▼
//               VariableNode { creator, rank }     a vertex of the graph; outlives the array
//                      │
//                      ▼
//               Node { inputs: VariableNode… }     an applied operation (node.h)
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "autograd/deferred.h"
#include "tensor/array.h"

namespace renga {

class Node;
class VariableBody;

// A binding's own view of a variable's array (Python keeps the ndarray it shows here).
class Face : public InSmallBlock {
 public:
  virtual ~Face() = default;
  // Whether nobody but the variable, whose memory it is, holds what this shows.
  virtual bool is_alone(const Storage& memory) const = 0;
};

class VariableNode final : public RefCounted {
 public:
  ~VariableNode() override;

  Ref<Node> creator;
  int output_index = 0;  // which output of the creator this is
  bool requires_grad = true;
  Shape shape;
  Dtype dtype = Dtype::float32;
  std::string name;
  std::unique_ptr<Array> retained;   // kept only where somebody asked for it (retain_data)
  VariableBody* variable = nullptr;  // the living Variable of this vertex, if there is one

  int rank() const;
  // Cuts the vertex off from what it was computed by.
  void unchain();
};

// A shared handle, as a Python reference is. A default-made one is "undefined": no gradient.
class Variable {
 public:
  Variable() = default;
  // A leaf; it takes part in the graph only when it requires a gradient.
  explicit Variable(const Array& array, bool requires_grad = false);
  Variable(const Array& array, Ref<VariableNode> node);
  explicit Variable(Ref<VariableBody> body) : body_(std::move(body)) {}

  bool defined() const { return static_cast<bool>(body_); }
  inline const Array& array() const;
  inline const Ref<VariableNode>& node() const;
  inline bool requires_grad() const;
  inline const Array& outline() const;
  const Shape& shape() const { return outline().shape(); }
  std::int64_t shape(int axis) const { return outline().shape(axis); }
  int ndim() const { return outline().ndim(); }
  std::int64_t size() const { return outline().size(); }
  Dtype dtype() const { return outline().dtype(); }
  Device device() const { return outline().device(); }
  const Ref<VariableBody>& body() const { return body_; }

 private:
  Ref<VariableBody> body_;
};

class VariableBody final : public RefCounted {
 public:
  VariableBody(const Array& array, Ref<VariableNode> node);
  ~VariableBody() override;

  const Array& array() const {
    if (deferred_) compute();
    return array_;
  }
  // The same for those who want to know all but its elements, which may not be computed yet.
  const Array& outline() const { return array_; }
  // Leaves the elements to be computed when they are asked for.
  void defer(Ref<const Deferred> deferred);
  // How the elements are to be computed; nullptr where they are.
  const Deferred* deferred() const {
    return deferred_ && !deferred_->is_done() ? deferred_.get() : nullptr;
  }
  // Replaces the array; the binding's view of the old one is dropped.
  void set_array(const Array& array);
  // Moves the variable to a fresh vertex without a creator's history.
  void set_node(Ref<VariableNode> node);
  const Ref<VariableNode>& node() const { return node_; }
  // Whether nobody can write to the array without its storage being shown once more.
  bool is_private() const { return face ? face->is_alone(*array_.storage()) : is_unshared(array_); }

  Variable grad;
  std::unique_ptr<Face> face;
  Ref<RefCounted> made;  // of the array, by an operation that knows whether it still fits
  std::optional<double> loss_scale;

 private:
  void compute() const;
  void drop_deferred() const;

  Array array_;
  mutable Ref<const Deferred> deferred_;
  Ref<VariableNode> node_;
};

const Array& Variable::array() const { return body_->array(); }
const Array& Variable::outline() const { return body_->outline(); }
const Ref<VariableNode>& Variable::node() const { return body_->node(); }
bool Variable::requires_grad() const { return body_->node()->requires_grad; }

// Whether operations record themselves: this thread's choice, else the process's default (true).
bool backprop_enabled();
void set_backprop_enabled(std::optional<bool> enabled);
std::optional<bool> thread_backprop_enabled();
void set_default_backprop_enabled(bool enabled);

// Chooses for a scope.
class BackpropMode {
 public:
  explicit BackpropMode(bool enabled) : before_(thread_backprop_enabled()) {
    set_backprop_enabled(enabled);
  }
  ~BackpropMode() { set_backprop_enabled(before_); }
  BackpropMode(const BackpropMode&) = delete;
  BackpropMode& operator=(const BackpropMode&) = delete;

 private:
  std::optional<bool> before_;
};

}  // namespace renga
