// Whole files, and how arrays lie in them: row-major, with the lowest byte first.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "tensor/array.h"

namespace renga {

std::string read_file(const std::string& file);
// Replaces a file when its content is written.
void write_file(const std::string& file, std::string_view content);

// The elements of an array on any device.
std::string bytes_of(const Array& x);
// An array with so many bytes, checked by the caller.
Array array_of(std::string_view bytes, const Shape& shape, Dtype dtype);

// The CRC-32 of bytes.
std::uint32_t checksum(std::string_view bytes);
// The `size` bytes that are compressed in `deflated`; throws std::invalid_argument if it does not
// hold them.
std::string inflated(std::string_view deflated, std::size_t size);

// Numbers as bytes.
template <class T>
void append_number(std::string& bytes, T value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}
// A number at a position; throws std::invalid_argument naming `what` beyond the end.
template <class T>
T number_at(std::string_view bytes, std::size_t position, const char* what) {
  require<std::invalid_argument>(position <= bytes.size() && bytes.size() - position >= sizeof(T),
                                 what, ": expected a complete file, got ", bytes.size(), " bytes");
  T value;
  std::memcpy(&value, bytes.data() + position, sizeof value);
  return value;
}

// `count` bytes from a position, likewise.
inline std::string_view part_of(std::string_view bytes, std::size_t position, std::size_t count,
                                const char* what) {
  require<std::invalid_argument>(position <= bytes.size() && bytes.size() - position >= count, what,
                                 ": expected a complete file, got ", bytes.size(), " bytes");
  return bytes.substr(position, count);
}

// The bytes of elements; throws std::invalid_argument naming `what` for a shape that no array has.
std::size_t checked_bytes(const Shape& shape, Dtype dtype, const char* what);

}  // namespace renga
