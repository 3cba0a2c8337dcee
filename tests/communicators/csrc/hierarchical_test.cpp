#include "collectives/hierarchical.h"

#include <doctest/doctest.h>

#include <atomic>
#include <cstring>

#include "operands.h"
#include "ranks.h"

using namespace renga;

namespace {

bool are_equal(const std::byte* x, const std::byte* y, std::int64_t n) {
  return std::memcmp(x, y, static_cast<std::size_t>(n) * sizeof(float)) == 0;
}

struct Nodes {
  int count;
  int ranks_each;
  int ranks() const { return count * ranks_each; }
};

// Calls act(context, segment) on each rank, and returns the bytes that all ranks sent.
template <class Act>
std::int64_t sent_bytes(const Nodes& nodes, const Act& act) {
  std::vector<int> node_of;
  for (int r = 0; r < nodes.ranks(); ++r) node_of.push_back(r / nodes.ranks_each);
  std::atomic<std::int64_t> sent = 0;
  run_ranks(node_of, [&](Transport& transport) {
    const CollectiveContext context = context_of(transport);
    const Topology& topology = transport.topology();
    const auto memory = transport.allocate_shared(SharedSegment::bytes(topology.intra_size));
    REQUIRE(memory != nullptr);
    SharedSegment segment(memory, topology.intra_rank, topology.intra_size, 0);
    act(context, segment);
    sent += transport.collective_traffic().bytes();
  });
  return sent;
}

constexpr std::int64_t kItemBytes = sizeof(float);
constexpr Nodes kNodes[] = {{3, 2}, {2, 4}};
// Less than a cache line, less than a piece, and more pieces than are in flight at once.
constexpr std::int64_t kSizes[] = {1, 1001, 50'000};

}  // namespace

TEST_CASE("a reduce-scatter on two levels has the bits of one level and sends partial results") {
  for (const Nodes& nodes : kNodes) {
    for (const std::int64_t n : kSizes) {
      for (const ReduceOp reduction : {ReduceOp::sum, ReduceOp::mean}) {
        const std::int64_t all = nodes.ranks() * n;
        const Array result = expected(nodes.ranks(), all, reduction);
        const std::int64_t sent =
            sent_bytes(nodes, [&](const CollectiveContext& context, SharedSegment& segment) {
              const Array x = operand(context.rank(), all), y = empty({n}, Dtype::float32);
              hierarchical::reduce_scatter(context, segment, FlatBucket({x}), FlatBucket({y}),
                                           Dtype::float32, reduction);
              const std::byte* own = result.data() + context.rank() * n * y.itemsize();
              CHECK(are_equal(y.data(), own, n));
            });
        CHECK(sent == (nodes.count - 1) * all * kItemBytes);
      }
    }
  }
}

TEST_CASE("an all-gather on two levels sends each block once to each node") {
  for (const Nodes& nodes : kNodes) {
    for (const std::int64_t n : kSizes) {
      const auto size_of_rank = [&](int r) { return n + 100 * (r % 3); };
      std::int64_t all = 0;
      for (int r = 0; r < nodes.ranks(); ++r) all += size_of_rank(r);
      const std::int64_t sent =
          sent_bytes(nodes, [&](const CollectiveContext& context, SharedSegment& segment) {
            const Array x = operand(context.rank(), size_of_rank(context.rank()));
            std::vector<Array> results;
            std::vector<FlatBucket> ys;
            for (int r = 0; r < nodes.ranks(); ++r) {
              results.push_back(empty({size_of_rank(r)}, Dtype::float32));
              ys.emplace_back(std::span(&results.back(), 1));
            }
            hierarchical::all_gather(context, segment, FlatBucket({x}), ys);
            for (int r = 0; r < nodes.ranks(); ++r) {
              CHECK(are_equal(results[static_cast<std::size_t>(r)].data(),
                              operand(r, size_of_rank(r)).data(), size_of_rank(r)));
            }
          });
      CHECK(sent == (nodes.count - 1) * all * kItemBytes);
    }
  }
}

TEST_CASE("an all-reduce on two levels has the bits of one level, in pieces and at once") {
  const all_reduce::NetworkModel fast{0, 1e-9}, slow{1, 1e-9};
  for (const Nodes& nodes : kNodes) {
    for (const std::int64_t n : {1, 1001, 500'000}) {
      for (const auto& network : {fast, slow}) {
        const Array result = expected(nodes.ranks(), n, ReduceOp::mean);
        const std::int64_t sent =
            sent_bytes(nodes, [&](const CollectiveContext& context, SharedSegment& segment) {
              const Array x = operand(context.rank(), n);
              const FlatBucket bucket({x});
              hierarchical::all_reduce(context, segment, network, bucket, bucket, Dtype::float32,
                                       ReduceOp::mean);
              CHECK(are_equal(x.data(), result.data(), n));
            });
        // Without latency the fewest bytes are sent: twice all but a node's own part of a vector.
        // Partitions are rounded to cache lines.
        const std::int64_t least = 2 * (nodes.count - 1) * n * kItemBytes;
        if (network.latency == 0) CHECK(sent <= least + least / 100 + 64 * 1024);
      }
    }
  }
}
