// Packed weights, kept while weights are used several times before they may change: in inference,
// and in a step whose batch comes in small parts.
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

  // `exposures` is how often the weights' memory has been exposed to writers. `keeps_first`:
  // whether a packing is kept from its first use on, instead of its second.
  PackedWeightCache(std::uint32_t exposures, bool keeps_first)
      : exposures_(exposures), keeps_first_(keeps_first) {}

  // The packed weights for `key`, made by `pack`; undefined where they are not kept yet.
  Array get(const Key& key, const std::function<Array()>& pack);
  bool is_valid_for(const Array& W) const { return W.storage()->exposures() == exposures_; }
  // Whether a packing was asked for more than once.
  bool was_reused() const { return reused_; }

 private:
  const std::uint32_t exposures_;
  const bool keeps_first_;
  bool reused_ = false;
  std::mutex mutex_;
  std::map<Key, Array> packed_;  // undefined after the first use
};

// The cache of W; nullptr if W's memory is shared. In training, also if each weight is multiplied
// with more than a few `pixels`: then packing takes too little of the time to keep its memory.
Ref<PackedWeightCache> packed_weight_cache(const Variable& W, std::int64_t pixels, bool training);

}  // namespace renga
