// Decompression of the deflate format (RFC 1951), which zip archives hold.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace renga {

// The `size` bytes that are compressed in `deflated`; throws std::invalid_argument if it does not
// hold them.
std::string inflate(std::string_view deflated, std::size_t size);

}  // namespace renga
