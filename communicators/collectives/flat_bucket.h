// Arrays of one dtype, read and written as one long vector: a flattened bucket.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tensor/array.h"
#include "tensor/strided_loop.h"

namespace renga {

class FlatBucket {
 public:
  // The arrays may have any strides; their elements follow each other in row-major order. In the
  // vector they have `communication_dtype`, by default their own. Offsets and lengths are in bytes
  // of the vector.
  explicit FlatBucket(std::span<const Array> arrays, std::optional<Dtype> communication_dtype = {});
  explicit FlatBucket(const std::vector<Array>& arrays,
                      std::optional<Dtype> communication_dtype = {})
      : FlatBucket(std::span(arrays), communication_dtype) {}

  // Whether the contiguous runs of an array are so long that copying them one by one is as fast as
  // making the array contiguous first.
  static bool has_long_runs(const Array& x);

  std::int64_t bytes() const { return parts_.empty() ? 0 : parts_.back().end; }
  void read(std::int64_t offset, std::int64_t length, std::byte* to) const;
  void write(std::int64_t offset, std::int64_t length, const std::byte* from) const;
  // Where a range is in memory, if it is contiguous there and of the communication dtype; or null.
  std::byte* contiguous_range(std::int64_t offset, std::int64_t length) const;

 private:
  // Calls visit(first byte in memory, bytes in the vector) for each contiguous run of a range.
  template <class Visit>
  void visit_runs(std::int64_t offset, std::int64_t length, const Visit& visit) const;

  struct Part {
    StridedLoop<1> array;
    std::int64_t end;  // its offset in the vector
  };
  std::vector<Part> parts_;
  Dtype array_dtype_ = Dtype::uint8;
  Dtype communication_dtype_ = Dtype::uint8;
};

}  // namespace renga
