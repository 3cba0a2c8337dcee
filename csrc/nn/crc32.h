// The checksum CRC-32 of zip archives.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace renga {

inline std::uint32_t crc32(std::string_view bytes) {
  static constexpr auto kTable = [] {
    std::array<std::uint32_t, 256> table{};
    for (std::uint32_t i = 0; i < 256; ++i) {
      table[i] = i;
      for (int bit = 0; bit < 8; ++bit) {
        table[i] = table[i] >> 1 ^ (table[i] & 1 ? 0xEDB88320u : 0);
      }
    }
    return table;
  }();
  std::uint32_t crc = ~0u;
  for (const char byte : bytes)
    crc = crc >> 8 ^ kTable[(crc ^ static_cast<unsigned char>(byte)) & 255];
  return ~crc;
}

}  // namespace renga
