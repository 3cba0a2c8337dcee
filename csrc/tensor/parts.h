// Parts of arrays that stay in the cores' own caches.
#pragma once

#include <functional>
#include <vector>

#include "tensor/array.h"

namespace renga {

// A part of each of several arrays: ranges of their axes.
struct Part {
  struct Cut {
    int axis;
    std::int64_t begin, length;
  };
  std::vector<Cut> cuts;

  Array of(Array x) const;
};

// Calls body(part) for parts that cover y, of 256 KiB or less for each thread as far as cuts of
// `axes` allow, the outermost first: what is done with a part finds it in the caches.
void for_each_part(const Array& y, const Axes& axes, const std::function<void(const Part&)>& body);

}  // namespace renga
