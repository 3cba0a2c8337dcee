#include "lazy/deferred_parts.h"

#include <algorithm>

#include "devices/parallel.h"
#include "devices/rounding.h"

namespace renga {

void DeferredParts::compute(const Array& y) const {
  settle();
  compute_parts(y, 0, {});
}

void DeferredParts::settle() const {
  if (!source_ || source_->is_done()) return;
  // Nothing else can ask for what it computes.
  if (source_->use_count() == 1) return source_->settle();
  source_->run();
}

std::int64_t DeferredParts::sample_bytes() const {
  const Array& y = array();
  const std::int64_t own = y.size() * y.itemsize() / std::max<std::int64_t>(y.shape(0), 1);
  return source_ ? std::max(own, source_->sample_bytes()) : own;
}

void DeferredStep::compute_parts(const Array& y, std::int64_t first, const PartPass& pass) const {
  if (const DeferredParts* const source = followed()) {
    return source->compute_parts(y, first, [&](std::int64_t begin, std::int64_t end) {
      transform(y, y, first, begin, end);
      if (pass) pass(begin, end);
    });
  }
  const bool is_whole = y.size() == x_.size();
  const Array x = is_whole ? x_ : elements_of(x_, first, first + y.size());
  if (!pass || !y.device().is_host()) {
    transform(x, y, first, 0, y.size());
    if (pass) pass(0, y.size());
    return;
  }
  constexpr std::int64_t kCached = 1 << 15;  // bytes
  const std::int64_t units = std::max<std::int64_t>(kCached / (y.itemsize() * unit()), 1);
  const std::int64_t step = units * unit();
  parallel_for(divide_up(y.size(), step), step, [&](std::int64_t from, std::int64_t to) {
    for (std::int64_t i = from; i < to; ++i) {
      const std::int64_t begin = i * step, end = std::min(y.size(), begin + step);
      transform(x, y, first, begin, end);
      pass(begin, end);
    }
  });
}

Ref<const DeferredParts> pending_parts(const Deferred* deferred) {
  constexpr int kMost = 6;
  const auto* const parts = dynamic_cast<const DeferredParts*>(deferred);
  return Ref<const DeferredParts>(parts != nullptr && parts->depth() < kMost ? parts : nullptr);
}

Array elements_of(const Array& x, std::int64_t begin, std::int64_t end) {
  return {x.storage(), x.data() + begin * x.itemsize(), {end - begin}, {x.itemsize()}, x.dtype()};
}

}  // namespace renga
