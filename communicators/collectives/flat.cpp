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

}  // namespace

Flat::Flat(const std::vector<Array>& parts, std::optional<Dtype> wire) {
  if (!parts.empty()) own_ = wire_ = parts[0].dtype();
  if (wire) wire_ = *wire;
  std::int64_t end = 0;
  for (const Array& part : parts) {
    end += part.size() * size_of(wire_);
    parts_.push_back(part.data());
    ends_.push_back(end);
  }
}

template <class Visit>
void Flat::visit(std::int64_t begin, std::int64_t bytes, const Visit& visit) const {
  const std::int64_t own = size_of(own_), wire = size_of(wire_);
  auto part = static_cast<std::size_t>(std::ranges::upper_bound(ends_, begin) - ends_.begin());
  for (const std::int64_t end = begin + bytes; begin < end; ++part) {
    const std::int64_t start = part == 0 ? 0 : ends_[part - 1];
    const std::int64_t length = std::min(end, ends_[part]) - begin;
    visit(parts_[part] + (begin - start) / wire * own, length);
    begin += length;
  }
}

void Flat::read(std::int64_t begin, std::int64_t bytes, std::byte* to) const {
  visit(begin, bytes, [&](const std::byte* part, std::int64_t length) {
    if (own_ == wire_) {
      std::memcpy(to, part, static_cast<std::size_t>(length));
    } else {
      convert(own_, part, wire_, to, length / size_of(wire_));
    }
    to += length;
  });
}

void Flat::write(std::int64_t begin, std::int64_t bytes, const std::byte* from) const {
  visit(begin, bytes, [&](std::byte* part, std::int64_t length) {
    if (own_ == wire_) {
      std::memcpy(part, from, static_cast<std::size_t>(length));
    } else {
      convert(wire_, from, own_, part, length / size_of(wire_));
    }
    from += length;
  });
}

}  // namespace renga
