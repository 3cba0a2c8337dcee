#include "collectives/flat.h"

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

// In the order of the axes, of which as many as possible are merged.
StridedLoop<1> in_order(const Array& x) {
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

Flat::Flat(const std::vector<Array>& parts, std::optional<Dtype> wire) {
  if (!parts.empty()) own_ = wire_ = parts[0].dtype();
  if (wire) wire_ = *wire;
  std::int64_t end = 0;
  for (const Array& part : parts) {
    end += part.size() * size_of(wire_);
    parts_.push_back(in_order(part));
    ends_.push_back(end);
  }
}

bool Flat::suits(const Array& x) {
  constexpr std::int64_t line = 64;  // of the cache
  if (x.is_contiguous()) return true;
  const StridedLoop<1> loop = in_order(x);
  return loop.strides[0].back() == x.itemsize() && loop.run() * x.itemsize() >= line;
}

template <class Visit>
void Flat::visit(std::int64_t begin, std::int64_t bytes, const Visit& visit) const {
  const std::int64_t wire = size_of(wire_);
  auto part = static_cast<std::size_t>(std::ranges::upper_bound(ends_, begin) - ends_.begin());
  for (const std::int64_t end = begin + bytes; begin < end; ++part) {
    const std::int64_t start = part == 0 ? 0 : ends_[part - 1];
    const std::int64_t length = std::min(end, ends_[part]) - begin;
    const std::int64_t first = (begin - start) / wire;
    walk(parts_[part], first, first + length / wire,
         [&](std::int64_t n, const auto& p, const auto& step) {
           if (step[0] == size_of(own_)) return visit(p[0], n * wire);
           for (std::int64_t i = 0; i < n; ++i) visit(p[0] + i * step[0], wire);
         });
    begin += length;
  }
}

void Flat::read(std::int64_t begin, std::int64_t bytes, std::byte* to) const {
  visit(begin, bytes, [&](const std::byte* run, std::int64_t length) {
    if (own_ == wire_) {
      std::memcpy(to, run, static_cast<std::size_t>(length));
    } else {
      convert(own_, run, wire_, to, length / size_of(wire_));
    }
    to += length;
  });
}

void Flat::write(std::int64_t begin, std::int64_t bytes, const std::byte* from) const {
  visit(begin, bytes, [&](std::byte* run, std::int64_t length) {
    if (own_ == wire_) {
      std::memcpy(run, from, static_cast<std::size_t>(length));
    } else {
      convert(wire_, from, own_, run, length / size_of(wire_));
    }
    from += length;
  });
}

std::byte* Flat::place(std::int64_t begin, std::int64_t bytes) const {
  std::byte* found = nullptr;
  visit(begin, bytes, [&](std::byte* run, std::int64_t length) {
    if (length == bytes && own_ == wire_) found = run;
  });
  return found;
}

}  // namespace renga
