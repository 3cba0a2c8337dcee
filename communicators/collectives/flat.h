// Arrays of one dtype, read one after another as a single long vector.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tensor/array.h"
#include "tensor/strided_loop.h"

namespace renga {

class Flat {
 public:
  // `parts` may have any strides; their elements come in the order of their axes. They are of dtype
  // `wire` in the vector where that is given and of the parts' own otherwise; sizes and positions
  // are those of the vector.
  explicit Flat(const std::vector<Array>& parts, std::optional<Dtype> wire = {});

  // Whether an array's runs without gaps are so long that copying them one by one takes no longer
  // than putting them together first.
  static bool suits(const Array& x);

  std::int64_t bytes() const { return ends_.empty() ? 0 : ends_.back(); }
  // Copies `bytes` from position `begin` on.
  void read(std::int64_t begin, std::int64_t bytes, std::byte* to) const;
  void write(std::int64_t begin, std::int64_t bytes, const std::byte* from) const;
  // Where a stretch lies as it would be copied; null where it lies in no one place.
  std::byte* place(std::int64_t begin, std::int64_t bytes) const;

 private:
  // visit(first byte in memory, bytes in the vector) for each run without gaps of the stretch.
  template <class Visit>
  void visit(std::int64_t begin, std::int64_t bytes, const Visit& visit) const;

  std::vector<StridedLoop<1>> parts_;
  std::vector<std::int64_t> ends_;  // where each part ends, in bytes of the vector
  Dtype own_ = Dtype::uint8;
  Dtype wire_ = Dtype::uint8;
};

}  // namespace renga
