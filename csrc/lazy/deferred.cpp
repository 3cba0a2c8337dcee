#include "lazy/deferred.h"

#include <utility>

#include "devices/forked_processes.h"
#include "devices/gil_release.h"

namespace renga {
namespace {

// Pending computations by the memory that they read. Storage::deferred_reads() counts entries.
ForkMutex mutex;
std::unordered_multimap<const Storage*, Ref<const Deferred>> readers;

Ref<const Deferred> reader_of(const Storage& memory) {
  const std::lock_guard lock(mutex);
  const auto found = readers.find(&memory);
  return found == readers.end() ? nullptr : found->second;
}

}  // namespace

Deferred::Deferred(Array y, std::initializer_list<Array> inputs) : y_(std::move(y)) {
  for (const Array& x : inputs) {
    if (x.defined()) inputs_.push_back(x.storage());
  }
}

Deferred::Deferred(Array y, const Deferred& source, const Array& other)
    : y_(std::move(y)), inputs_(source.inputs_) {
  inputs_.push_back(source.array().storage());
  if (other.defined()) inputs_.push_back(other.storage());
}

void Deferred::run() const {
  {
    // The computing thread may need the GIL, which a waiting thread must not hold.
    const GilRelease released;
    std::call_once(once_, [this] {
      compute(y_);
      done_.store(true, std::memory_order_release);
    });
  }
  unwatch();
}

void Deferred::watch() const {
  const std::lock_guard lock(mutex);
  for (const auto& input : inputs_) {
    readers.emplace(input.get(), Ref<const Deferred>(this));
    input->count_deferred_read(1);
  }
}

void Deferred::unwatch() const {
  // Destroyed after the lock is released: the last reference may free memory.
  SmallVector<Ref<const Deferred>> removed;
  const std::lock_guard lock(mutex);
  for (const auto& input : inputs_) {
    const auto [begin, end] = readers.equal_range(input.get());
    for (auto entry = begin; entry != end; ++entry) {
      if (entry->second.get() != this) continue;
      removed.push_back(std::move(entry->second));
      readers.erase(entry);
      input->count_deferred_read(-1);
      break;
    }
  }
}

bool is_unshared(const Array& x) {
  return x.storage()->use_count() == 1 && !x.storage()->is_borrowed();
}

bool is_internal(const Array& x) {
  return x.storage()->exposures() == 0 && !x.storage()->is_borrowed();
}

void expose(const Array& x) {
  const Storage& memory = *x.storage();
  memory.count_exposure();
  // Another thread may defer further computations meanwhile.
  while (memory.deferred_reads() > 0) {
    if (const auto reader = reader_of(memory)) reader->run();
  }
}

}  // namespace renga
