#include "ops/matmul/packed_weight_cache.h"

#include <algorithm>
#include <limits>
#include <mutex>

#include "devices/forked_processes.h"

namespace renga {
namespace {

ForkMutex packings_mutex;  // of all caches

}  // namespace

Array PackedWeightCache::get(const Key& key, const std::function<Array()>& pack,
                             std::int64_t many_uses) {
  const std::int64_t first = expected_uses_ >= many_uses ? first_kept_ : many_uses;
  {
    const std::lock_guard lock(packings_mutex);
    Packing& packing = packings_[key];
    most_uses_ = std::max(most_uses_, ++packing.uses);
    if (packing.weights.defined() || packing.uses < first) return packing.weights;
  }
  const Array packed = pack();
  const std::lock_guard lock(packings_mutex);
  Array& kept = packings_[key].weights;
  if (!kept.defined()) kept = packed;
  return kept;
}

void PackedWeightCache::clear() {
  std::map<Key, Packing> freed;  // after the lock is released: that may wait
  const std::lock_guard lock(packings_mutex);
  freed.swap(packings_);
}

Array kept_or_packed(PackedWeightCache* cache, const PackedWeightCache::Key& key,
                     const std::function<Array()>& pack, std::int64_t many_uses) {
  const Array kept = cache != nullptr ? cache->get(key, pack, many_uses) : Array();
  return kept.defined() ? kept : pack();
}

Ref<PackedWeightCache> packed_weight_cache(const Variable& W, std::int64_t numbers, bool training) {
  constexpr std::int64_t kFewNumbers = 2048;
  if (training && numbers > kFewNumbers) return nullptr;
  VariableBody& body = *W.body();
  Ref<PackedWeightCache> cache(static_cast<PackedWeightCache*>(body.cache.get()));
  if (cache && cache->is_valid_for(W.array())) return cache;
  if (!body.is_exclusive()) {
    if (cache) cache->clear();
    return nullptr;
  }
  const std::uint32_t exposures = W.array().storage()->exposures();
  if (training) {
    // These weights will be used as often as those before the last update.
    cache = make_ref<PackedWeightCache>(exposures, cache ? cache->most_uses() : 0, 1);
  } else {
    cache = make_ref<PackedWeightCache>(exposures, std::numeric_limits<std::int64_t>::max(), 2);
  }
  body.cache = cache;
  return cache;
}

}  // namespace renga
