#include "collectives/flat_bucket.h"

#include <algorithm>
#include <cstring>

namespace renga {

namespace {

void convert(Dtype from_dtype, const std::byte* from, Dtype to_dtype, std::byte* to,
             std::int64_t n) {
  visit_dtype(from_dtype, [&]<class X>(Type<X>) {
    visit_dtype(to_dtype, [&]<class Y>(Type<Y>) {
      if constexpr (is_floating<X> && is_floating<Y>) {
        const X* x = reinterpret_cast<const X*>(from);
        Y* y = reinterpret_cast<Y*>(to);
        for (std::int64_t i = 0; i < n; ++i) {
          y[i] = static_cast<Y>(static_cast<Compute<Y>>(static_cast<Compute<X>>(x[i])));
        }
      }
    });
  });
}

// A loop in row-major order, with as many axes merged as possible.
StridedLoop<1> row_major_loop(const Array& x) {
  StridedLoop<1> loop{{}, {}, {x.data()}};
  for (int axis = 0; axis < x.ndim(); ++axis) {
    if (x.shape(axis) != 1) detail::append_axis<1>(loop, x.shape(axis), {x.strides()[axis]});
  }
  if (loop.extents.empty()) {
    loop.extents.push_back(1);
    loop.strides[0].push_back(x.itemsize());
  }
  return loop;
}

}  // namespace

FlatBucket::FlatBucket(std::span<const Array> arrays, std::optional<Dtype> communication_dtype) {
  if (!arrays.empty()) array_dtype_ = communication_dtype_ = arrays[0].dtype();
  if (communication_dtype) communication_dtype_ = *communication_dtype;
  parts_.reserve(arrays.size());
  std::int64_t end = 0;
  for (const Array& x : arrays) {
    end += x.size() * size_of(communication_dtype_);
    parts_.push_back({row_major_loop(x), end});
  }
}

bool FlatBucket::has_long_runs(const Array& x) {
  constexpr std::int64_t cache_line = 64;
  if (x.is_contiguous()) return true;
  const StridedLoop<1> loop = row_major_loop(x);
  return loop.strides[0].back() == x.itemsize() && loop.run() * x.itemsize() >= cache_line;
}

template <class Visit>
void FlatBucket::visit_runs(std::int64_t offset, std::int64_t length, const Visit& visit) const {
  const std::int64_t itemsize = size_of(communication_dtype_);
  auto part = std::ranges::upper_bound(parts_, offset, {}, &Part::end);
  for (const std::int64_t end = offset + length; offset < end; ++part) {
    const std::int64_t begin = part == parts_.begin() ? 0 : std::prev(part)->end;
    const std::int64_t bytes = std::min(end, part->end) - offset;
    const std::int64_t first = (offset - begin) / itemsize;
    for_each_run(part->array, first, first + bytes / itemsize,
                 [&](std::int64_t n, const auto& p, const auto& step) {
                   if (step[0] == size_of(array_dtype_)) return visit(p[0], n * itemsize);
                   for (std::int64_t k = 0; k < n; ++k) visit(p[0] + k * step[0], itemsize);
                 });
    offset += bytes;
  }
}

void FlatBucket::read(std::int64_t offset, std::int64_t length, std::byte* to) const {
  visit_runs(offset, length, [&](const std::byte* run, std::int64_t bytes) {
    if (array_dtype_ == communication_dtype_) {
      std::memcpy(to, run, static_cast<std::size_t>(bytes));
    } else {
      convert(array_dtype_, run, communication_dtype_, to, bytes / size_of(communication_dtype_));
    }
    to += bytes;
  });
}

void FlatBucket::write(std::int64_t offset, std::int64_t length, const std::byte* from) const {
  visit_runs(offset, length, [&](std::byte* run, std::int64_t bytes) {
    if (array_dtype_ == communication_dtype_) {
      std::memcpy(run, from, static_cast<std::size_t>(bytes));
    } else {
      convert(communication_dtype_, from, array_dtype_, run, bytes / size_of(communication_dtype_));
    }
    from += bytes;
  });
}

std::byte* FlatBucket::contiguous_range(std::int64_t offset, std::int64_t length) const {
  std::byte* range = nullptr;
  visit_runs(offset, length, [&](std::byte* run, std::int64_t bytes) {
    if (bytes == length && array_dtype_ == communication_dtype_) range = run;
  });
  return range;
}

}  // namespace renga
