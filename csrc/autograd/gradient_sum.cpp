#include "autograd/gradient_sum.h"

#include <utility>

#include "autograd/thread_state.h"

namespace renga {

CollectedSums::CollectedSums(CollectedTerms* sums)
    : previous_(std::exchange(thread_state.collected_sums, sums)) {}

CollectedSums::~CollectedSums() { thread_state.collected_sums = previous_; }

GradientSums* sums_of(const VariableNode& x) {
  CollectedTerms* const sums = thread_state.collected_sums;
  if (sums == nullptr) return nullptr;
  const auto found = sums->find(&x);
  if (found != sums->end()) return &found->second;
  // One reference is the variable's, the others are of operations.
  return x.use_count() > 2 ? &(*sums)[&x] : nullptr;
}

}  // namespace renga
