#include "ops/convolution/packed_weight_cache.h"

namespace renga {

Array PackedWeightCache::get(const Key& key, const std::function<Array()>& pack) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = packed_.find(key);
    if (found != packed_.end()) return found->second;
  }
  const Array packed = pack();
  const std::lock_guard lock(mutex_);
  return packed_.emplace(key, packed).first->second;
}

Ref<PackedWeightCache> packed_weight_cache(const Variable& W) {
  if (backprop_enabled()) return nullptr;
  VariableBody& body = *W.body();
  Ref<PackedWeightCache> cache(static_cast<PackedWeightCache*>(body.cache.get()));
  if (cache && cache->is_valid_for(W.array())) return cache;
  body.cache =
      body.is_exclusive() ? make_ref<PackedWeightCache>(W.array().storage()->exposures()) : nullptr;
  return nullptr;
}

}  // namespace renga
