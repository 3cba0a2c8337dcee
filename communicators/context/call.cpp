#include "context/call.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <sstream>

namespace renga {

namespace {

// The bytes after the text are zero already.
template <std::size_t N>
void set_text(char (&to)[N], const char* text) {
  for (std::size_t i = 0; i + 1 < N && text[i] != 0; ++i) to[i] = text[i];
}

}  // namespace

Call::Call(const char* name) { set_text(op, name); }

Call& Call::with(const Shape& extents, Dtype type) {
  dtype = static_cast<std::int32_t>(type);
  ndim = extents.size();
  std::copy(extents.begin(), extents.end(), shape);
  return *this;
}

Call& Call::with(const std::vector<Array>& xs, Dtype type) {
  if (xs.size() == 1) return with(xs[0].shape(), type);
  std::int64_t elements = 0;
  std::uint32_t hash = 2166136261u;  // FNV-1a
  const auto mix = [&hash](std::int64_t value) {
    hash = (hash ^ static_cast<std::uint32_t>(value)) * 16777619u;
    hash = (hash ^ static_cast<std::uint32_t>(value >> 32)) * 16777619u;
  };
  for (const Array& x : xs) {
    elements += x.size();
    mix(x.ndim());
    for (const std::int64_t extent : x.shape()) mix(extent);
  }
  arrays = static_cast<std::int32_t>(xs.size());
  shapes_hash = static_cast<std::int32_t>(hash);
  return with(Shape{elements}, type);
}

Call& Call::with_detail(const char* text) {
  set_text(detail, text);
  return *this;
}

Call& Call::with_peer(int rank) {
  peer = rank;
  return *this;
}

Call& Call::in_windows(std::int32_t layout) {
  window_layout = layout;
  return *this;
}

Call& Call::at(const std::string& call_site) {
  // The end of a long path is kept.
  const std::size_t length = std::min(call_site.size(), sizeof(site) - 1);
  set_text(site, call_site.c_str() + (call_site.size() - length));
  return *this;
}

std::string Call::text() const {
  std::ostringstream out;
  out << op;
  if (detail[0]) out << ' ' << detail;
  if (dtype >= 0) out << ' ' << static_cast<Dtype>(dtype);
  if (ndim >= 0) out << ' ' << Shape(std::span(shape, static_cast<std::size_t>(ndim)));
  if (arrays != 1)
    out << " in " << arrays << " arrays (shapes " << std::hex << shapes_hash << std::dec << ')';
  if (peer >= 0) out << (std::strcmp(op, "send") == 0 ? " to rank " : " from rank ") << peer;
  if (window_layout != 0) out << " in a window (" << window_layout << ')';
  return out.str();
}

std::string Call::text_and_site() const { return site[0] ? text() + " at " + site : text(); }

bool Call::matches(const Call& other) const {
  static_assert(offsetof(Call, shape) == 48, "memcmp must not read padding");
  return std::memcmp(this, &other, offsetof(Call, site)) == 0;
}

std::uint64_t Call::digest() const {
  constexpr std::size_t word = sizeof(std::uint64_t);
  std::uint64_t hash = 0x9e3779b97f4a7c15u;
  const auto mix = [&hash](const void* data, std::size_t bytes) {
    for (std::size_t offset = 0; offset < bytes; offset += word) {
      std::uint64_t next = 0;
      std::memcpy(&next, static_cast<const char*>(data) + offset, word);
      hash = (hash ^ next) * 0xd6e8feb86659fd93u;
      hash ^= hash >> 32;
    }
  };
  // The extents of unused axes are zero, so they are left out.
  mix(this, offsetof(Call, shape) + word * static_cast<std::size_t>(std::max(ndim, 0)));
  mix(&sequence, word);
  return hash;
}

void require_matching(const std::vector<Call>& calls) {
  for (std::size_t r = 1; r < calls.size(); ++r) {
    if (calls[r].matches(calls[0])) continue;
    fail<CallMismatch>(calls[0].op, ": expected the same call on every rank, got ",
                       calls[0].text_and_site(), " on rank 0 and ", calls[r].text_and_site(),
                       " on rank ", r);
  }
}

}  // namespace renga
