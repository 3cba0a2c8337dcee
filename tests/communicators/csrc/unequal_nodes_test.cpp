#include "collectives/unequal_nodes.h"

#include <doctest/doctest.h>

#include <atomic>
#include <cstring>
#include <numeric>

#include "collectives/node_layout.h"
#include "operands.h"
#include "ranks.h"

using namespace renga;

namespace {

// All-reduces on ranks of `nodes`, checks the bits, and returns the bytes that all ranks sent.
std::int64_t check(const std::vector<int>& nodes, std::int64_t n, ReduceOp reduction) {
  CAPTURE(nodes.size());
  CAPTURE(n);
  const Array y = expected(static_cast<int>(nodes.size()), n, reduction);
  std::atomic<std::int64_t> sent = 0;
  run_ranks(nodes, [&](Transport& transport) {
    const CollectiveContext context = context_of(transport);
    const Topology& topology = transport.topology();
    const auto memory = transport.allocate_shared(SharedSegment::bytes(topology.intra_size));
    REQUIRE(memory != nullptr);
    SharedSegment segment(memory, topology.intra_rank, topology.intra_size, 0);
    const Array x = operand(context.rank(), n);
    const FlatBucket bucket({x});
    unequal_nodes::all_reduce(context, segment, bucket, bucket, Dtype::float32, reduction);
    CHECK(std::memcmp(x.data(), y.data(), static_cast<std::size_t>(n) * sizeof(float)) == 0);
    sent += transport.collective_traffic().bytes();
  });
  return sent;
}

}  // namespace

TEST_CASE("unequal nodes give the bits of any other algorithm") {
  const std::vector<std::vector<int>> placements = {
      {0, 0, 1},
      {0, 1, 1, 1},
      {0, 0, 0, 1, 1, 1},
      {0, 1, 0, 1},
      {0, 0, 0, 0, 1, 1},
      {2, 0, 0, 1, 0, 2, 2},
      {0, 0, 0, 1, 1, 2, 2, 2, 2, 2, 3},
      {0, 1, 2},
      {0, 0, 0},
  };
  for (const auto& nodes : placements) {
    for (const std::int64_t n : {1, 1001, 140'000}) {
      check(nodes, n, ReduceOp::sum);
    }
    check(nodes, 1001, ReduceOp::mean);
  }
  check({0, 0, 1}, 2'200'000, ReduceOp::sum);  // more than goes between nodes at once
}

TEST_CASE("unequal nodes send partial results, not operands") {
  constexpr std::int64_t n = 100'000, bytes = n * sizeof(float);
  // A node with one subtree sends once the vector in all: others' partitions of its partial
  // result, and its own partition of the result. Partitions are rounded to cache lines.
  CHECK(check({0, 0, 0, 0, 1, 1}, n, ReduceOp::sum) <= 2 * bytes + 4096);
  // Operands 2 and 3 are one pair of the tree, on two nodes: (0 1), 2 and 3, (4 5).
  CHECK(check({0, 0, 0, 1, 1, 1}, n, ReduceOp::sum) <= 3 * bytes + 4096);
}

TEST_CASE("the largest subtrees of nodes") {
  const auto ranges_of = [](const std::vector<int>& nodes) {
    const NodeLayout layout(topology_of(0, nodes));
    std::vector<std::pair<int, int>> found;
    for (const auto& s : layout.subtrees()) found.emplace_back(s.begin, s.end);
    return found;
  };
  using Ranges = std::vector<std::pair<int, int>>;
  CHECK(ranges_of({0, 0, 0, 1}) == Ranges{{0, 2}, {2, 3}, {3, 4}});
  CHECK(ranges_of({0, 0, 0, 0, 1, 1}) == Ranges{{0, 4}, {4, 6}});
  CHECK(ranges_of({0, 0, 0, 1, 1, 1}) == Ranges{{0, 2}, {2, 3}, {3, 4}, {4, 6}});
  CHECK(ranges_of({5, 5, 5, 5, 5}) == Ranges{{0, 5}});
}

TEST_CASE("the halves of a tree are trees") {
  CHECK(left_operands(2) == 1);
  CHECK(left_operands(3) == 2);
  CHECK(left_operands(5) == 3);
  CHECK(left_operands(6) == 4);
  CHECK(left_operands(7) == 4);
  CHECK(left_operands(12) == 8);
}
