#include "ops/convolution/packed_weight_cache.h"

namespace renga {

Array PackedWeightCache::get(const Key& key, const std::function<Array()>& pack) {
  {
    const std::lock_guard lock(mutex_);
    const auto [found, is_first] = packed_.try_emplace(key);
    reused_ |= !is_first;
    if (found->second.defined() || (is_first && !keeps_first_)) return found->second;
  }
  const Array packed = pack();
  const std::lock_guard lock(mutex_);
  return packed_[key] = packed;
}

Ref<PackedWeightCache> packed_weight_cache(const Variable& W, std::int64_t pixels, bool training) {
  constexpr std::int64_t kFewPixels = 2048;
  if (training && pixels > kFewPixels) return nullptr;
  VariableBody& body = *W.body();
  Ref<PackedWeightCache> cache(static_cast<PackedWeightCache*>(body.cache.get()));
  if (cache && cache->is_valid_for(W.array())) return cache;
  if (!body.is_exclusive()) {
    body.cache = nullptr;
    return nullptr;
  }
  // As often as the weights before the last update, so often will these be used.
  const bool keeps_first = cache && cache->was_reused();
  cache = make_ref<PackedWeightCache>(W.array().storage()->exposures(), keeps_first);
  body.cache = cache;
  return cache;
}

}  // namespace renga
