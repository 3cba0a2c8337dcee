#include "ops/sampling/band.h"

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <map>
#include <utility>

namespace renga {
namespace {

// The elements that are not 0, by row and column.
std::map<std::pair<std::int64_t, std::int64_t>, double> elements(const Band& band) {
  std::map<std::pair<std::int64_t, std::int64_t>, double> found;
  for (std::int64_t k = 0; k < band.taps; ++k) {
    for (std::int64_t i = 0; i < band.count(); ++i) {
      const double w = band.weights[static_cast<std::size_t>(k * band.count() + i)];
      if (w != 0) found[{band.first + i, band.begin[static_cast<std::size_t>(i)] + k}] = w;
    }
  }
  return found;
}

TEST_CASE("the transpose of a band has the rows that are used, and no others") {
  const std::array<double, 2> positions{4, 5.5};
  const Band band = values_at(positions, 9);
  const Band other = transposed(band);
  CHECK(elements(band) == decltype(elements(band)){{{0, 4}, 1}, {{1, 5}, 0.5}, {{1, 6}, 0.5}});
  CHECK(elements(other) == decltype(elements(band)){{{4, 0}, 1}, {{5, 1}, 0.5}, {{6, 1}, 0.5}});
  CHECK(other.first == 4);
  CHECK(other.count() == 3);
}

}  // namespace
}  // namespace renga
