#include "transport/progress_thread.h"

#include <doctest/doctest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <vector>

using namespace renga;

namespace {

using std::chrono::milliseconds;

// Is over after `polls` polls, none of which changes anything.
class Countdown final : public InFlight {
 public:
  explicit Countdown(int polls) : polls_(polls) {}
  Poll poll() override {
    const int remaining = --polls_;
    if (slow) std::this_thread::sleep_for(milliseconds(20));
    ++polled;
    return remaining > 0 ? Poll::unchanged : Poll::over;
  }
  std::atomic<int> polled = 0;
  std::atomic<bool> slow = false;

 private:
  int polls_;
};

bool becomes_true(const std::function<bool()>& condition) {
  for (int i = 0; i < 20'000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(milliseconds(1));
  }
  return false;
}

constexpr int kForever = 1'000'000;

}  // namespace

TEST_CASE("messages are polled until they are over") {
  ProgressThread thread;
  Countdown once(1), thrice(3);
  thread.add(once, false);
  thread.add(thrice, true);
  CHECK(becomes_true([&] { return thrice.polled == 3; }));
  CHECK(becomes_true([&] { return once.polled == 1; }));
  std::this_thread::sleep_for(milliseconds(20));
  CHECK(once.polled == 1);
  CHECK(thrice.polled == 3);
  SUBCASE("and the thread wakes for others") {
    Countdown other(2);
    thread.add(other, false);
    CHECK(becomes_true([&] { return other.polled == 2; }));
    thread.remove(other);
  }
  thread.remove(once);
  thread.remove(thrice);
}

TEST_CASE("all of many messages get their turn") {
  ProgressThread thread;
  std::vector<std::unique_ptr<Countdown>> many;
  for (int i = 0; i < 100; ++i) {
    thread.add(*many.emplace_back(std::make_unique<Countdown>(kForever)), false);
  }
  for (const auto& one : many) CHECK(becomes_true([&] { return one->polled >= 2; }));
  for (const auto& one : many) thread.remove(*one);
}

TEST_CASE("messages that were removed are not used any more") {
  ProgressThread thread;
  for (int i = 0; i < 20; ++i) {
    auto one = std::make_unique<Countdown>(kForever), other = std::make_unique<Countdown>(kForever);
    one->slow = true;
    thread.add(*one, true);
    thread.add(*other, true);
    CHECK(becomes_true([&] { return one->polled > 0 && other->polled > 0; }));
    thread.remove(*one);  // most often while it is polled
    const int polled = one->polled;
    std::this_thread::sleep_for(milliseconds(1));
    CHECK(one->polled == polled);
    one.reset();
    thread.remove(*other);
  }
}

TEST_CASE("a thread that was stopped polls nothing") {
  ProgressThread thread;
  Countdown before(kForever), after(kForever);
  thread.add(before, false);
  CHECK(becomes_true([&] { return before.polled > 0; }));
  thread.stop();
  const int polled = before.polled;
  thread.add(after, true);
  std::this_thread::sleep_for(milliseconds(10));
  CHECK(before.polled == polled);
  CHECK(after.polled == 0);
  thread.remove(before);
  thread.remove(after);
  thread.stop();
}
