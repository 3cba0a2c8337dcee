#include <doctest/doctest.h>

#include <cmath>
#include <cstring>

#include "collectives/all_reduce/algorithm_selection.h"
#include "ranks.h"

using namespace renga;
using all_reduce::Algorithm;

namespace {

// Values whose sum depends on the order of the operands.
template <class T>
std::vector<T> operand(int rank, std::int64_t n) {
  std::vector<T> x;
  for (std::int64_t i = 0; i < n; ++i) {
    const double value = std::sin(1.0 + static_cast<double>(i) + 17.0 * rank);
    x.push_back(static_cast<T>(std::is_integral_v<T> ? 1000 * value : value * std::pow(3.0, rank)));
  }
  return x;
}

// The reduction in the order of reduce.h.
template <class T>
std::vector<T> expected(int ranks, std::int64_t n, ReduceOp reduction) {
  std::vector<std::vector<T>> xs;
  std::vector<const std::byte*> pointers;
  for (int r = 0; r < ranks; ++r) xs.push_back(operand<T>(r, n));
  for (const auto& x : xs) pointers.push_back(reinterpret_cast<const std::byte*>(x.data()));
  std::vector<T> y(static_cast<std::size_t>(n));
  reduce(reduction, dtype_of<T>, pointers, reinterpret_cast<std::byte*>(y.data()), n);
  return y;
}

template <class T>
void check_algorithm(Algorithm algorithm, int ranks, std::int64_t n, ReduceOp reduction) {
  CAPTURE(all_reduce::name_of(algorithm));
  CAPTURE(ranks);
  const std::vector<T> y = expected<T>(ranks, n, reduction);
  run_ranks(ranks, [&](Transport& transport) {
    const CollectiveContext context = context_of(transport);
    std::vector<T> x = operand<T>(context.rank(), n);
    const all_reduce::Vector v{reinterpret_cast<std::byte*>(x.data()), n, dtype_of<T>, reduction};
    run(all_ranks(context), v, {}, algorithm);
    REQUIRE(x.size() == y.size());
    CHECK((n == 0 || std::memcmp(x.data(), y.data(), x.size() * sizeof(T)) == 0));
  });
}

}  // namespace

TEST_CASE("all algorithms but the ring give the same bits") {
  for (const int ranks : {1, 2, 3, 4, 5, 8, 12}) {
    for (const Algorithm algorithm :
         {Algorithm::all_gather, Algorithm::direct, Algorithm::recursive_doubling,
          Algorithm::rabenseifner, Algorithm::tree, Algorithm::torus}) {
      for (const std::int64_t n : {1, 7, 1001}) {
        check_algorithm<float>(algorithm, ranks, n, ReduceOp::sum);
      }
      check_algorithm<double>(algorithm, ranks, 100, ReduceOp::mean);
    }
  }
}

TEST_CASE("the ring is exact for integers") {
  for (const int ranks : {2, 3, 6}) {
    for (const std::int64_t n : {0, 1, 7, 1001}) {
      check_algorithm<std::int64_t>(Algorithm::ring, ranks, n, ReduceOp::sum);
      check_algorithm<std::int64_t>(Algorithm::ring, ranks, n, ReduceOp::max);
    }
  }
}

TEST_CASE("a reduction over a subgroup leaves the other ranks out") {
  run_ranks(6, [](Transport& transport) {
    const CollectiveContext context = context_of(transport);
    float x = static_cast<float>(context.rank());
    const RankGroup group = strided_ranks(context, context.rank() % 2, 2, 3);
    run(group, {reinterpret_cast<std::byte*>(&x), 1, Dtype::float32, ReduceOp::sum}, {},
        Algorithm::rabenseifner);
    CHECK(x == (context.rank() % 2 == 0 ? 6.0F : 9.0F));
  });
}

TEST_CASE("algorithms are found by name, and whole is an older one") {
  CHECK(all_reduce::algorithm_from_string("tree") == Algorithm::tree);
  CHECK(all_reduce::algorithm_from_string("whole") == Algorithm::all_gather);
  CHECK(!all_reduce::algorithm_from_string(""));
  CHECK_THROWS_AS(all_reduce::algorithm_from_string("magic"), std::invalid_argument);
}

TEST_CASE("short vectors take few steps, long ones few bytes") {
  const all_reduce::NetworkModel network{1e-5, 1e-9};
  CHECK(all_reduce::fastest(64, 8, false, network) == Algorithm::recursive_doubling);
  const Algorithm algorithm = all_reduce::fastest(64, 64 << 20, false, network);
  const double seconds = all_reduce::predicted_seconds(algorithm, 64, 64 << 20, false, network);
  const double least = 2.0 * 63 / 64 * (64 << 20) * 1e-9;
  CHECK(seconds > least);
  CHECK(seconds < 1.1 * least);
  CHECK(all_reduce::torus_width(7) == 1);
  CHECK(std::isinf(all_reduce::predicted_seconds(Algorithm::torus, 7, 8, false, network)));
}

TEST_CASE("measuring a network gives all ranks the same numbers") {
  std::vector<all_reduce::NetworkModel> models(3);
  run_ranks(3, [&](Transport& transport) {
    const CollectiveContext context = context_of(transport);
    models[static_cast<std::size_t>(context.rank())] = all_reduce::measure_network(context);
  });
  for (const auto& model : models) {
    CHECK(model.latency > 0);
    CHECK(model.latency == models[0].latency);
    CHECK(model.seconds_per_byte == models[0].seconds_per_byte);
  }
}
