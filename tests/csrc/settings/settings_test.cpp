#include "settings/settings.h"

#include <doctest/doctest.h>

#include <thread>

namespace renga {
namespace {

TEST_CASE("a thread follows the process until it has a setting of its own") {
  default_settings.precision.set(Precision::medium);
  CHECK(compute_precision() == Precision::medium);
  {
    const SettingScope high(&Settings::precision, Precision::high);
    CHECK(compute_precision() == Precision::high);
    Precision other{};
    std::thread([&other] { other = compute_precision(); }).join();
    CHECK(other == Precision::medium);
    {
      const SettingScope highest(&Settings::precision, Precision::highest);
      CHECK(compute_precision() == Precision::highest);
    }
    CHECK(compute_precision() == Precision::high);
    CHECK(backprop_enabled());
  }
  CHECK_FALSE(thread_settings.precision.get());
  default_settings.precision.set(Precision::highest);
  CHECK(compute_precision() == Precision::highest);
}

}  // namespace
}  // namespace renga
