#include "shared_memory/shared_lock.h"

#include <cerrno>
#include <cstdint>
#include <ctime>

#include "context/collective_context.h"
#include "devices/gil_release.h"
#include "tensor/error.h"

namespace renga {

namespace {

constexpr long kSignalIntervalNanoseconds = 50'000'000;

timespec next_signal_check() {
  timespec time{};
  clock_gettime(CLOCK_REALTIME, &time);  // the clock of pthread_mutex_timedlock
  time.tv_nsec += kSignalIntervalNanoseconds;
  if (time.tv_nsec >= 1'000'000'000) {
    time.tv_nsec -= 1'000'000'000;
    ++time.tv_sec;
  }
  return time;
}

}  // namespace

SharedLock::SharedLock(const Array& memory) : memory_(memory) {
  constexpr auto bytes = static_cast<std::int64_t>(sizeof(pthread_mutex_t));
  require(memory.is_contiguous() && memory.size() * memory.itemsize() >= bytes,
          "SharedLock: expected ", bytes, " contiguous bytes, got ", memory.shape());
  require<std::invalid_argument>(
      reinterpret_cast<std::uintptr_t>(memory.data()) % alignof(pthread_mutex_t) == 0,
      "SharedLock: expected aligned memory");
}

pthread_mutex_t* SharedLock::mutex() const {
  return reinterpret_cast<pthread_mutex_t*>(memory_.data());
}

void SharedLock::initialize() {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ERRORCHECK);
  const int error = pthread_mutex_init(mutex(), &attributes);
  pthread_mutexattr_destroy(&attributes);
  require<std::runtime_error>(error == 0, "SharedLock: not initialized: error ", error);
}

void SharedLock::lock() {
  int error = pthread_mutex_trylock(mutex());
  if (error == EBUSY) {
    const GilRelease lend;
    do {
      const timespec until = next_signal_check();
      error = pthread_mutex_timedlock(mutex(), &until);
      if (error == ETIMEDOUT && check_signals != nullptr) check_signals();
    } while (error == ETIMEDOUT);
  }
  if (error == EOWNERDEAD) error = pthread_mutex_consistent(mutex());
  require<std::runtime_error>(error == 0, "SharedLock: not locked: error ", error);
}

void SharedLock::unlock() {
  const int error = pthread_mutex_unlock(mutex());
  require<std::runtime_error>(error == 0, "SharedLock: not unlocked: error ", error);
}

}  // namespace renga
