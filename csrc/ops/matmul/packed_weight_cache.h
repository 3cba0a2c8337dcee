// Packed weights, kept while weights are used several times before they may change: in inference,
// and in a step whose batch comes in small parts.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "autograd/variable.h"

namespace renga {

// The weights of one array, transformed or in another memory layout.
class PackedWeightCache final : public ArrayCache {
 public:
  // Identifies a packing: the algorithm and all that its layout depends on.
  using Key = std::vector<std::int64_t>;

  // So many uses make up for packing, in general.
  static constexpr std::int64_t kManyUses = 4;

  // `exposures` is how often the weights' memory has been exposed to writers. Packings are kept
  // from the `first_kept`th use on if `expected_uses` make up for them.
  PackedWeightCache(std::uint32_t exposures, std::int64_t expected_uses, std::int64_t first_kept)
      : exposures_(exposures), expected_uses_(expected_uses), first_kept_(first_kept) {}

  // The packed weights for `key`, made by `pack`; undefined where they are not kept yet. A packing
  // that is not expected to be used `many_uses` times is kept from that use on.
  Array get(const Key& key, const std::function<Array()>& pack, std::int64_t many_uses = kManyUses);
  void clear() override;
  bool is_valid_for(const Array& W) const { return W.storage()->exposures() == exposures_; }
  // Returns how often the packing that was used most was used.
  std::int64_t most_uses() const { return most_uses_; }

 private:
  const std::uint32_t exposures_;
  const std::int64_t expected_uses_, first_kept_;
  std::int64_t most_uses_ = 0;
  struct Packing {
    std::int64_t uses = 0;
    Array weights;  // undefined until it is kept
  };
  std::map<Key, Packing> packings_;
};

// The packed weights for `key` from the cache, if there is one and it keeps them; else those that
// `pack` makes.
Array kept_or_packed(PackedWeightCache* cache, const PackedWeightCache::Key& key,
                     const std::function<Array()>& pack,
                     std::int64_t many_uses = PackedWeightCache::kManyUses);

// The cache of W; nullptr if W's memory is shared. In training, also if each weight is multiplied
// with more than a few `numbers`: then packing takes too little of the time to keep its memory. For
// the same reason, training keeps packings only of weights that are used several times in a step.
Ref<PackedWeightCache> packed_weight_cache(const Variable& W, std::int64_t numbers, bool training);

}  // namespace renga
