#include "collectives/flat.h"

#include <algorithm>
#include <cstring>

namespace renga {

Flat::Flat(const std::vector<Array>& parts) {
  for (const Array& part : parts) {
    parts_.push_back(part.data());
    ends_.push_back(bytes() + part.size() * part.itemsize());
  }
}

template <class Visit>
void Flat::visit(std::int64_t begin, std::int64_t bytes, const Visit& visit) const {
  auto part = static_cast<std::size_t>(std::ranges::upper_bound(ends_, begin) - ends_.begin());
  for (const std::int64_t end = begin + bytes; begin < end; ++part) {
    const std::int64_t start = part == 0 ? 0 : ends_[part - 1];
    const std::int64_t length = std::min(end, ends_[part]) - begin;
    visit(parts_[part] + (begin - start), static_cast<std::size_t>(length));
    begin += length;
  }
}

void Flat::read(std::int64_t begin, std::int64_t bytes, std::byte* to) const {
  visit(begin, bytes, [&to](const std::byte* part, std::size_t length) {
    std::memcpy(to, part, length);
    to += length;
  });
}

void Flat::write(std::int64_t begin, std::int64_t bytes, const std::byte* from) const {
  visit(begin, bytes, [&from](std::byte* part, std::size_t length) {
    std::memcpy(part, from, length);
    from += length;
  });
}

}  // namespace renga
