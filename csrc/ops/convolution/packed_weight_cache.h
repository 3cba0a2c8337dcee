// Packed weights, cached in inference mode and invalidated when the weight array may have been
// modified.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <vector>

#include "autograd/variable.h"

namespace renga {

// The weights of one array, transformed or in another memory layout.
class PackedWeightCache final : public RefCounted {
 public:
  // Identifies a packing: the algorithm and all that its layout depends on.
  using Key = std::vector<std::int64_t>;

  // `exposures` is how often the weights' memory has been exposed to writers.
  explicit PackedWeightCache(std::uint32_t exposures) : exposures_(exposures) {}

  // The packed weights for `key`, made by `pack` on the first call.
  Array get(const Key& key, const std::function<Array()>& pack);
  bool is_valid_for(const Array& W) const { return W.storage()->exposures() == exposures_; }

 private:
  const std::uint32_t exposures_;
  std::mutex mutex_;
  std::map<Key, Array> packed_;
};

// The cache of W, from its second use on. nullptr before, if W's memory is shared, or if the graph
// is recorded: then W is about to change.
Ref<PackedWeightCache> packed_weight_cache(const Variable& W);

}  // namespace renga
