// Where the gradient of an operation's input goes. A backward pass hands a sink to each VJP, which
// may ask it for the memory in which the leaf keeps its gradient, may add to the sum of earlier
// passes itself, or may leave its term to be computed together with others.
#pragma once

#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "autograd/variable.h"

namespace renga {

class GradientSink;

// Each leaf has an array of its shape, into which operations write its first gradient: ranks that
// share memory read gradients there, and a copy is saved. Keys are only compared.
class GradientBuffers {
 public:
  GradientBuffers() = default;
  explicit GradientBuffers(std::unordered_map<const VariableNode*, Array> buffers)
      : buffers_(std::move(buffers)) {}

  // The buffer of `x`; undefined if it has none.
  Array of(const VariableNode& x) const;
  // Whether only the leaf `x` has the memory of `gradient`, which may be its buffer, and each
  // element its own place there: then it may be written.
  bool is_owned(const VariableNode& x, const Variable& gradient) const;

 private:
  std::unordered_map<const VariableNode*, Array> buffers_;
};

// This counts, for each leaf that requires a gradient, how many nodes before the roots read it.
using LeafUses = std::unordered_map<const VariableNode*, int>;
LeafUses count_leaf_uses(const std::vector<Ref<VariableNode>>& roots);
// The leaves that require a gradient, among the roots and before them, each once; in the same order
// for equal graphs.
std::vector<Ref<VariableNode>> leaves_before(const std::vector<Ref<VariableNode>>& roots);

// Terms of the gradient of one variable that are summed up at once, as the products of a recurrent
// network's weight: one product of stacked rows writes its gradient once. Their arrays do not
// change before the end of the backward pass.
class GradientTerms {
 public:
  virtual ~GradientTerms() = default;
  // Their sum, in their order; undefined if there is none.
  virtual Variable sum(GradientSink& to) = 0;
};

// The terms of each variable, by their kind.
using CollectedTerms =
    std::unordered_map<const VariableNode*, std::vector<std::unique_ptr<GradientTerms>>>;

// A pass gives operations this access to the gradients that leaves keep.
struct LeafAccess {
  const GradientBuffers* buffers;
  CollectedTerms* collected;                    // nullptr where each term is computed at once
  const std::vector<Ref<VariableNode>>* roots;  // of the graph
  std::optional<LeafUses> uses;                 // counted when it is first asked for

  int uses_of(const VariableNode& x);
};

// The sink of one input in one pass. Without a pass, gradients lie in new memory.
class GradientSink {
 public:
  GradientSink() = default;
  // `leaves` is nullptr where nothing is written to where leaves keep it. `sum` has the terms of
  // this pass so far.
  GradientSink(LeafAccess* leaves, Node* node, const VariableNode* x, Variable* sum)
      : leaves_(leaves), node_(node), x_(x), sum_(sum) {}

  // An array for the gradient: the leaf's buffer, at most once, if it is free and fits.
  Array empty(const Shape& shape, Dtype dtype, Device device);
  // The sum of earlier passes: an operation that adds its gradient there returns an undefined
  // Variable. Undefined where there is none that fits, or where the graph uses the leaf several
  // times, as those gradients are added up before.
  Array earlier_sum(const Shape& shape, Dtype dtype, Device device) const;
  // The terms of kind `Terms`; an operation that adds its own there returns an undefined Variable.
  // nullptr where the gradient is computed at each use: what one operation uses gains nothing, and
  // its terms would be kept for longer.
  template <class Terms>
  Terms* terms() {
    auto* const all = collected_terms();
    if (all == nullptr) return nullptr;
    for (const auto& terms : *all) {
      if (auto* found = dynamic_cast<Terms*>(terms.get())) return found;
    }
    all->push_back(std::make_unique<Terms>());
    return static_cast<Terms*>(all->back().get());
  }

  // Adds a term, whose dtype may be another activation's; the sum has the dtype of the variable.
  void add(const Variable& gx);
  // Takes the sum of the terms so far.
  Variable take() { return std::exchange(*sum_, Variable()); }

  // The operation whose backward() runs.
  Node& node() const { return *node_; }

 private:
  bool is_first_of_leaf() const;
  std::vector<std::unique_ptr<GradientTerms>>* collected_terms();

  LeafAccess* leaves_ = nullptr;
  Node* node_ = nullptr;
  const VariableNode* x_ = nullptr;
  Variable* sum_ = nullptr;
  bool has_given_buffer_ = false;
};

}  // namespace renga
