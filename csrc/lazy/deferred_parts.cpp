#include "lazy/deferred_parts.h"

#include <algorithm>

#include "devices/parallel.h"
#include "devices/rounding.h"

namespace renga {

void DeferredStep::compute_parts(const Array& y, const PartPass& pass) const {
  // Nothing else can ask for x: only y is written.
  if (source_ && source_->use_count() == 1 && !source_->is_done()) {
    return source_->compute_parts(y, [&](std::int64_t begin, std::int64_t end) {
      transform(y, y, begin, end);
      if (pass) pass(begin, end);
    });
  }
  if (source_) source_->run();
  if (!pass || !y.device().is_host()) {
    transform(x_, y, 0, y.size());
    if (pass) pass(0, y.size());
    return;
  }
  constexpr std::int64_t kCached = 1 << 15;  // bytes
  const std::int64_t units = std::max<std::int64_t>(kCached / (y.itemsize() * unit()), 1);
  const std::int64_t step = units * unit();
  parallel_for(divide_up(y.size(), step), step, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) {
      const std::int64_t begin = i * step, end = std::min(y.size(), begin + step);
      transform(x_, y, begin, end);
      pass(begin, end);
    }
  });
}

Ref<const DeferredParts> pending_parts(const Deferred* deferred) {
  constexpr int kMost = 4;
  const auto* const parts = dynamic_cast<const DeferredParts*>(deferred);
  return Ref<const DeferredParts>(parts != nullptr && parts->depth() < kMost ? parts : nullptr);
}

Array elements_of(const Array& x, std::int64_t begin, std::int64_t end) {
  return {x.storage(), x.data() + begin * x.itemsize(), {end - begin}, {x.itemsize()}, x.dtype()};
}

}  // namespace renga
