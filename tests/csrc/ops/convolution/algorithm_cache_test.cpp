#include "ops/convolution/algorithm_cache.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <string>

namespace renga {
namespace {

std::string selected(int problem, const char* algorithm) {
  return cached_algorithm("problem " + std::to_string(problem), [&] { return algorithm; });
}

TEST_CASE("selected algorithms: ever new problems do not fill the memory, and loaded ones stay") {
  const AlgorithmCache before = algorithm_cache();
  clear_algorithms();
  load_algorithms({{"problem 7", "loaded"}});
  std::size_t most = 0;
  for (int i = 0; i < 20000; ++i) {
    CHECK(selected(i, "winograd") == (i == 7 ? "loaded" : "winograd"));
    CHECK(selected(i, "direct") == (i == 7 ? "loaded" : "winograd"));  // as selected before
    if (i % 1000 == 999) most = std::max(most, algorithm_cache().size());
  }
  CHECK(most < 5000);
  CHECK(algorithm_cache().at("problem 7") == "loaded");
  clear_algorithms();
  load_algorithms(before);
}

}  // namespace
}  // namespace renga
