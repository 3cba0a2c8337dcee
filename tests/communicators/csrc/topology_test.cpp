#include "transport/topology.h"

#include <doctest/doctest.h>

using namespace renga;

TEST_CASE("nodes are numbered in the order of their first ranks") {
  const Topology topology = topology_of(2, {7, 7, 3, 3});
  CHECK(topology.rank == 2);
  CHECK(topology.size == 4);
  CHECK(topology.intra_rank == 0);
  CHECK(topology.intra_size == 2);
  CHECK(topology.inter_rank == 1);
  CHECK(topology.inter_size == 2);
  CHECK(topology.nodes == std::vector{0, 0, 1, 1});
}

TEST_CASE("nodes are uniform if each holds one power of two of consecutive ranks") {
  const auto is_uniform = [](const std::vector<int>& nodes) {
    return topology_of(0, nodes).uniform_nodes;
  };
  CHECK(is_uniform({0, 0, 0}));
  CHECK(is_uniform({0, 0, 1, 1, 2, 2}));
  CHECK(is_uniform({0, 1, 2}));
  CHECK(!is_uniform({0, 1, 0, 1}));
  CHECK(!is_uniform({0, 0, 0, 1}));
  CHECK(!is_uniform({0, 0, 0, 1, 1, 1}));
}
