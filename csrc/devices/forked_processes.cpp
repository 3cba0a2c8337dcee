#include "devices/forked_processes.h"

#include <omp.h>
#include <pthread.h>

#include <chrono>
#include <set>
#include <thread>

namespace renga {
namespace {

struct Mutexes {
  std::mutex mutex;
  std::set<std::mutex*> all;

  bool try_lock_all() {
    for (auto next = all.begin(); next != all.end(); ++next) {
      if ((*next)->try_lock()) continue;
      while (next != all.begin()) (*--next)->unlock();
      return false;
    }
    return true;
  }
};

Mutexes& mutexes() {
  static auto* const kept = new Mutexes;  // never destroyed: statics of any file are in it
  return *kept;
}

// Threads lock several mutexes in any order, so nothing stays locked while one is waited for.
void lock_all() {
  for (;;) {
    mutexes().mutex.lock();
    if (mutexes().try_lock_all()) return;
    mutexes().mutex.unlock();
    std::this_thread::sleep_for(std::chrono::microseconds(10));
  }
}

void unlock_all() {
  for (std::mutex* const each : mutexes().all) each->unlock();
  mutexes().mutex.unlock();
}

void before_fork() {
  // OpenMP's threads of the forking thread would not exist in the child, where a parallel region
  // would wait for them forever. Both processes start new ones.
  omp_pause_resource_all(omp_pause_hard);
  lock_all();
}

void in_child() {
  unlock_all();
  omp_set_num_threads(1);  // a child is most often one of many
}

[[maybe_unused]] const int registered = pthread_atfork(&before_fork, &unlock_all, &in_child);

}  // namespace

ForkMutex::ForkMutex() {
  const std::lock_guard lock(mutexes().mutex);
  mutexes().all.insert(&mutex_);
}

ForkMutex::~ForkMutex() {
  const std::lock_guard lock(mutexes().mutex);
  mutexes().all.erase(&mutex_);
}

}  // namespace renga
