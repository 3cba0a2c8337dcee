// Gradients of variables that operations use many times, as the weight of a recurrent network. An
// operation hands over what its term is made of, and all terms are computed at once: a product of
// stacked rows writes the gradient of a weight once.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "autograd/variable.h"

namespace renga {

// Terms of one kind. Their arrays do not change before the end of the backward pass.
class GradientSum {
 public:
  virtual ~GradientSum() = default;
  // The sum of the terms, in their order; undefined if all were refused.
  virtual Variable compute() = 0;
};

// The sums of one variable, one of each kind.
class GradientSums {
 public:
  // The sum of kind `Sum`, new if there is none.
  template <class Sum>
  Sum& of() {
    for (const auto& sum : sums_) {
      if (auto* found = dynamic_cast<Sum*>(sum.get())) return *found;
    }
    auto sum = std::make_unique<Sum>();
    Sum& result = *sum;
    sums_.push_back(std::move(sum));
    return result;
  }
  const std::vector<std::unique_ptr<GradientSum>>& all() const { return sums_; }

 private:
  std::vector<std::unique_ptr<GradientSum>> sums_;
};

using CollectedTerms = std::unordered_map<const VariableNode*, GradientSums>;

// Collects terms in `sums` for the scope of a backward pass; not at all if it is nullptr.
class CollectedSums {
 public:
  explicit CollectedSums(CollectedTerms* sums);
  ~CollectedSums();
  CollectedSums(const CollectedSums&) = delete;
  CollectedSums& operator=(const CollectedSums&) = delete;

 private:
  CollectedTerms* previous_;
};

// Where the terms of `x` are collected; nullptr where its gradient is computed at each use. What
// one operation uses gains nothing, and its terms would be kept for longer.
GradientSums* sums_of(const VariableNode& x);

}  // namespace renga
