#include "collectives/peer_reads.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>

#include "ranks.h"

using namespace renga;

namespace {

// Values whose sum depends on the order of the operands; `offset` tells arrays apart.
Array operand(int rank, std::int64_t n, int offset) {
  Array x = empty({n}, Dtype::float32);
  auto* data = reinterpret_cast<float*>(x.data());
  for (std::int64_t i = 0; i < n; ++i) {
    data[i] = static_cast<float>(std::sin(static_cast<double>(i + offset + 17 * rank)) *
                                 std::pow(3.0, rank));
  }
  return x;
}

std::vector<Array> operands(int rank, const std::vector<std::int64_t>& sizes) {
  std::vector<Array> xs;
  for (const std::int64_t n : sizes) xs.push_back(operand(rank, n, static_cast<int>(xs.size())));
  return xs;
}

// Returns the reduction of each array in the order of reduce.h.
std::vector<Array> expected(int ranks, const std::vector<std::int64_t>& sizes, ReduceOp reduction) {
  std::vector<std::vector<Array>> all;
  for (int r = 0; r < ranks; ++r) all.push_back(operands(r, sizes));
  std::vector<Array> ys;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    std::vector<const std::byte*> pointers;
    for (const auto& xs : all) pointers.push_back(xs[i].data());
    ys.push_back(empty({sizes[i]}, Dtype::float32));
    reduce(reduction, Dtype::float32, pointers, ys.back().data(), sizes[i]);
  }
  return ys;
}

bool same_bits(const Array& x, const Array& y) {
  const auto bytes = static_cast<std::size_t>(x.size() * x.itemsize());
  return bytes == 0 || std::memcmp(x.data(), y.data(), bytes) == 0;
}

void on_one_node(int ranks,
                 const std::function<void(const CollectiveContext&, SharedSegment&)>& body) {
  run_ranks(ranks, [&](Transport& transport) {
    const CollectiveContext context = context_of(transport);
    const auto memory = transport.allocate_shared(SharedSegment::bytes(ranks));
    REQUIRE(memory != nullptr);
    SharedSegment segment(memory, context.rank(), ranks, 0);
    body(context, segment);
  });
}

}  // namespace

TEST_CASE("reading peers' memory gives the bits of any other algorithm") {
  const std::vector<std::vector<std::int64_t>> lists = {
      {600'001}, {1}, {0, 5, 300'000, 0, 16, 70'000}};
  for (const int ranks : {2, 3, 4, 5}) {
    for (const auto& sizes : lists) {
      for (const ReduceOp reduction : {ReduceOp::sum, ReduceOp::mean}) {
        const std::vector<Array> ys = expected(ranks, sizes, reduction);
        on_one_node(ranks, [&](const CollectiveContext& context, SharedSegment& segment) {
          const std::vector<Array> xs = operands(context.rank(), sizes);
          const std::vector<Array> other = operands(context.rank(), sizes);
          CHECK(peer_reads::all_reduce(context, segment, xs, other, reduction));
          CHECK(peer_reads::all_reduce(context, segment, xs, xs, reduction));
          for (std::size_t i = 0; i < ys.size(); ++i) {
            CHECK(same_bits(xs[i], ys[i]));
            CHECK(same_bits(other[i], ys[i]));
          }
        });
      }
    }
  }
}

TEST_CASE("an array of one rank that is not contiguous is seen by all, and nothing is done") {
  on_one_node(3, [](const CollectiveContext& context, SharedSegment& segment) {
    const Array whole = operand(context.rank(), 20, 0);
    const Array before = operand(context.rank(), 20, 0);
    const Strides strides{context.rank() == 1 ? 8 : 4};
    const Array x(whole.storage(), whole.data(), Shape{10}, strides, Dtype::float32);
    CHECK(!peer_reads::all_reduce(context, segment, {x}, {x}, ReduceOp::sum));
    CHECK(same_bits(whole, before));
  });
}

TEST_CASE("long arrays are worth it, many short ones are not, and all ranks measure the same") {
  std::vector<int> answers(2);
  on_one_node(2, [&](const CollectiveContext& context, SharedSegment& segment) {
    const auto arrays = [](std::size_t count, std::int64_t n) {
      return std::vector<Array>(count, empty({n}, Dtype::float32));
    };
    CHECK(peer_reads::pays(context, arrays(1, 1 << 20)));
    CHECK(peer_reads::pays(context, arrays(8, 1 << 17)));
    CHECK(!peer_reads::pays(context, arrays(1, 1 << 18)));
    CHECK(!peer_reads::pays(context, arrays(1000, 1 << 10)));
    answers[static_cast<std::size_t>(context.rank())] = peer_reads::is_faster(context, segment);
  });
  CHECK(answers[0] == answers[1]);
}
