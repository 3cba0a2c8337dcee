// Filters as kernels want them, kept for as long as nobody can have written to the filters.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <vector>

#include "autograd/variable.h"

namespace renga {

// Filters transformed or in another order of memory, by what kind of form it is.
class FilterForms final : public RefCounted {
 public:
  using Key = std::vector<std::int64_t>;

  explicit FilterForms(std::uint32_t shows) : shows_(shows) {}

  // What `make` returned for `key` at first.
  Array get(const Key& key, const std::function<Array()>& make);
  bool fits(const Array& W) const { return W.storage()->exposures() == shows_; }

 private:
  const std::uint32_t shows_;  // of the filters' memory
  std::mutex mutex_;
  std::map<Key, Array> forms_;
};

// Those of W, from its second use on; nullptr before, where somebody holds W's memory, and where
// history is recorded: then W is about to change.
Ref<FilterForms> filter_forms(const Variable& W);

}  // namespace renga
