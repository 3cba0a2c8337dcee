#include "tensor/parts.h"

#include <omp.h>

#include <algorithm>

#include "tensor/views.h"

namespace renga {

Array Part::of(Array x) const {
  for (const auto& [axis, begin, length] : cuts) x = slice_view(x, axis, begin, length);
  return x;
}

void for_each_part(const Array& y, const Axes& axes, const std::function<void(const Part&)>& body) {
  // The body's loops share a part among all threads.
  const std::int64_t cached = std::int64_t{omp_get_max_threads()} << 18;
  Part part;
  const auto visit = [&](const auto& self, int k, std::int64_t bytes) -> void {
    if (bytes <= cached || k == axes.size()) return body(part);
    const int axis = static_cast<int>(axes[k]);
    const std::int64_t n = y.shape(axis), step = std::max<std::int64_t>(cached / (bytes / n), 1);
    for (std::int64_t begin = 0; begin < n; begin += step) {
      part.cuts.push_back({axis, begin, std::min(step, n - begin)});
      self(self, k + 1, bytes / n * part.cuts.back().length);
      part.cuts.pop_back();
    }
  };
  visit(visit, 0, y.size() * y.itemsize());
}

}  // namespace renga
