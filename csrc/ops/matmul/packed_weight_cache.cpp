#include "ops/matmul/packed_weight_cache.h"

#include <algorithm>

namespace renga {

Array PackedWeightCache::get(const Key& key, const std::function<Array()>& pack) {
  {
    const std::lock_guard lock(mutex_);
    Packing& packing = packings_[key];
    most_uses_ = std::max(most_uses_, ++packing.uses);
    if (packing.weights.defined() || packing.uses < first_kept_) return packing.weights;
  }
  const Array packed = pack();
  const std::lock_guard lock(mutex_);
  return packings_[key].weights = packed;
}

void PackedWeightCache::clear() {
  const std::lock_guard lock(mutex_);
  packings_.clear();
}

Ref<PackedWeightCache> packed_weight_cache(const Variable& W, std::int64_t numbers, bool training) {
  constexpr std::int64_t kFewNumbers = 2048, kManyUses = 4;
  if (training && numbers > kFewNumbers) return nullptr;
  VariableBody& body = *W.body();
  Ref<PackedWeightCache> cache(static_cast<PackedWeightCache*>(body.cache.get()));
  if (cache && cache->is_valid_for(W.array())) return cache;
  if (!body.is_exclusive()) {
    if (cache) cache->clear();
    return nullptr;
  }
  std::int64_t first_kept = 2;
  if (training) {
    // As often as the weights before the last update, so often will these be used.
    first_kept = cache && cache->most_uses() >= kManyUses ? 1 : kManyUses;
  }
  cache = make_ref<PackedWeightCache>(W.array().storage()->exposures(), first_kept);
  body.cache = cache;
  return cache;
}

}  // namespace renga
