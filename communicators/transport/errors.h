// A communication can fail with these errors.
#pragma once

#include <stdexcept>

namespace renga {

// A wait has exceeded its time-out; the message names the missing ranks. TimeoutError in Python.
class TimeoutError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Another rank has failed or exited. renga.communicators.RankFailed in Python.
class RankFailed : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace renga
