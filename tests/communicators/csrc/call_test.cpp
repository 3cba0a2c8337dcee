#include "context/call.h"

#include <doctest/doctest.h>

using namespace renga;

namespace {

Call sum_of(const Shape& shape) {
  return Call("all_reduce").with(shape, Dtype::float32).with_detail("sum");
}

}  // namespace

TEST_CASE("calls match if all but the call site is equal") {
  CHECK(sum_of({2, 3}).matches(sum_of({2, 3}).at("train.py:31")));
  CHECK(!sum_of({2, 3}).matches(sum_of({3, 2})));
  CHECK(!sum_of({2, 3}).matches(sum_of({2, 3}).in_windows(7)));
  CHECK(!sum_of({2, 3}).matches(Call("all_reduce").with(Shape{2, 3}, Dtype::float64)));
  CHECK(!Call("bcast").with_peer(0).matches(Call("bcast").with_peer(1)));
}

TEST_CASE("digests are equal for calls that match and differ otherwise") {
  CHECK(sum_of({2, 3}).digest() == sum_of({2, 3}).at("train.py:31").digest());
  CHECK(sum_of({2, 3}).digest() != sum_of({3, 2}).digest());
  CHECK(sum_of({2}).digest() != sum_of({2, 1}).digest());
  Call next = sum_of({2, 3});
  next.sequence = 1;
  CHECK(sum_of({2, 3}).digest() != next.digest());
}

TEST_CASE("the shapes of several arrays are compared by a hash") {
  const std::vector<Array> xs{empty({2, 3}, Dtype::int8), empty({4}, Dtype::int8)};
  const std::vector<Array> ys{empty({6}, Dtype::int8), empty({4}, Dtype::int8)};
  const Call x = Call("all_reduce").with(xs, Dtype::int8),
             y = Call("all_reduce").with(ys, Dtype::int8);
  CHECK(x.shape[0] == 10);
  CHECK(x.arrays == 2);
  CHECK(!x.matches(y));
}

TEST_CASE("the text of a call names what ranks have to agree on") {
  CHECK(sum_of({2, 3}).text() == "all_reduce sum float32 (2, 3)");
  CHECK(Call("send").with_peer(2).text() == "send to rank 2");
  CHECK(Call("barrier").at("train.py:31").text_and_site() == "barrier at train.py:31");
  const std::string path(200, 'x');
  CHECK(Call("barrier").at(path + ":7").text_and_site().ends_with("x:7"));
}

TEST_CASE("a mismatch names two ranks and their calls") {
  CHECK_NOTHROW(require_matching({sum_of({2}), sum_of({2})}));
  CHECK_THROWS_WITH_AS(require_matching({sum_of({2}), sum_of({2}), Call("barrier")}),
                       "all_reduce: expected the same call on every rank, got all_reduce sum "
                       "float32 (2,) on rank 0 and barrier on rank 2",
                       CallMismatch);
}
