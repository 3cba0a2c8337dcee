#include "call.h"

#include <cstddef>
#include <cstring>
#include <sstream>

namespace renga {

namespace {

template <std::size_t N>
void set_text(char (&to)[N], const char* text) {
  std::strncpy(to, text, N - 1);
}

}  // namespace

Call::Call(const char* name) { set_text(op, name); }

Call& Call::with(const Shape& extents, Dtype type) {
  dtype = static_cast<std::int32_t>(type);
  ndim = extents.size();
  std::copy(extents.begin(), extents.end(), shape);
  return *this;
}

Call& Call::with_detail(const char* text) {
  set_text(detail, text);
  return *this;
}

Call& Call::with_peer(int rank) {
  peer = rank;
  return *this;
}

Call& Call::in_window(std::int32_t places) {
  window = places;
  return *this;
}

Call& Call::at(const std::string& place) {
  // The end of a long path says more than its beginning.
  const std::size_t room = sizeof(site) - 1;
  set_text(site, place.size() > room ? place.c_str() + (place.size() - room) : place.c_str());
  return *this;
}

std::string Call::text() const {
  std::ostringstream out;
  out << op;
  if (detail[0]) out << ' ' << detail;
  if (dtype >= 0) out << ' ' << static_cast<Dtype>(dtype);
  if (ndim >= 0) out << ' ' << Shape(std::span(shape, static_cast<std::size_t>(ndim)));
  if (peer >= 0) out << (std::strcmp(op, "send") == 0 ? " to rank " : " from rank ") << peer;
  if (window != 0) out << " in a window (" << window << ')';
  return out.str();
}

std::string Call::text_and_site() const { return site[0] ? text() + " at " + site : text(); }

bool Call::agrees_with(const Call& other) const {
  static_assert(offsetof(Call, shape) == 40, "no padding that memcmp would read");
  return std::memcmp(this, &other, offsetof(Call, site)) == 0;
}

}  // namespace renga
