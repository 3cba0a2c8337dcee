// Arrays of one dtype, read one after another as a single long vector.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tensor/array.h"

namespace renga {

class Flat {
 public:
  // `parts` are contiguous. The vector's elements are of dtype `wire` where that is given and of
  // the parts' own otherwise; sizes and positions are those of the vector.
  explicit Flat(const std::vector<Array>& parts, std::optional<Dtype> wire = {});

  std::int64_t bytes() const { return ends_.empty() ? 0 : ends_.back(); }
  // Copies `bytes` from position `begin` on.
  void read(std::int64_t begin, std::int64_t bytes, std::byte* to) const;
  void write(std::int64_t begin, std::int64_t bytes, const std::byte* from) const;

 private:
  // visit(first byte in a part, bytes in the vector) for each part that the stretch touches.
  template <class Visit>
  void visit(std::int64_t begin, std::int64_t bytes, const Visit& visit) const;

  std::vector<std::byte*> parts_;
  std::vector<std::int64_t> ends_;  // where each part ends, in bytes of the vector
  Dtype own_ = Dtype::uint8;
  Dtype wire_ = Dtype::uint8;
};

}  // namespace renga
