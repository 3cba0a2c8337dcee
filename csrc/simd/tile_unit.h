// The unit that multiplies tiles (simd/tiles.h) is chosen here.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace renga::simd {

enum class TileUnit : std::uint8_t { none, portable, amx };

// The processor's, if it has one and the system lets this process use it.
TileUnit tile_unit();
inline bool has_tiles() { return tile_unit() != TileUnit::none; }

// "none", "portable" or "amx".
const char* name_of(TileUnit unit);
// Tests set what tile_unit() returns, by its name; nullopt restores the default. Throws
// std::invalid_argument for other names, and for "amx" on a machine without.
void override_tile_unit(const std::optional<std::string>& name);

}  // namespace renga::simd
