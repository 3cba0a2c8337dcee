#include "simd/tile_unit.h"

#include <algorithm>
#include <array>
#include <atomic>

#include "simd/cpu_features.h"
#include "tensor/error.h"

namespace renga::simd {
namespace {

constexpr std::array kNames{"none", "portable", "amx"};

TileUnit machine_unit() { return has_amx() ? TileUnit::amx : TileUnit::none; }

std::atomic<std::optional<TileUnit>> requested{std::nullopt};

}  // namespace

TileUnit tile_unit() {
  const std::optional<TileUnit> unit = requested.load(std::memory_order_relaxed);
  return unit ? *unit : machine_unit();
}

const char* name_of(TileUnit unit) { return kNames[static_cast<std::size_t>(unit)]; }

void override_tile_unit(const std::optional<std::string>& name) {
  if (!name) return requested.store(std::nullopt);
  const auto found = std::find(kNames.begin(), kNames.end(), *name);
  const auto unit = static_cast<TileUnit>(found - kNames.begin());
  require<std::invalid_argument>(
      found != kNames.end() && (unit != TileUnit::amx || machine_unit() == TileUnit::amx),
      "override_tile_unit: expected none, portable or, where the processor has it, amx, got ",
      *name);
  requested = unit;
}

}  // namespace renga::simd
