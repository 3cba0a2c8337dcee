#include "autograd/deferred.h"

#include <unordered_map>
#include <utility>

#include "autograd/backward.h"
#include "devices/long_work.h"

namespace renga {
namespace {

// What is deferred, by the memory that it reads. Storage::deferred_reads() counts its entries.
std::mutex mutex;
std::unordered_multimap<const Storage*, Ref<const Deferred>> readers;

Ref<const Deferred> reader_of(const Storage& memory) {
  const std::lock_guard lock(mutex);
  const auto found = readers.find(&memory);
  return found == readers.end() ? nullptr : found->second;
}

}  // namespace

Deferred::Deferred(Array y, std::initializer_list<Array> inputs) : y_(std::move(y)) {
  for (const Array& x : inputs) inputs_.push_back(x.storage());
}

void Deferred::run() const {
  {
    // The thread that computes may need the interpreter lock, which a waiting one must not hold.
    const LongWork released;
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

void expose(const Array& x) {
  const Storage& memory = *x.storage();
  memory.show();
  // What another thread defers meanwhile may follow from what is deferred now.
  while (memory.deferred_reads() > 0) {
    if (const auto reader = reader_of(memory)) reader->run();
  }
}

void VariableBody::defer(Ref<const Deferred> deferred) {
  if (has_backward_observer()) return deferred->run();
  deferred->watch();
  deferred_ = std::move(deferred);
}

void VariableBody::compute() const {
  const Ref<const Deferred> deferred = deferred_;
  deferred->run();
  if (deferred_ == deferred) deferred_ = nullptr;
}

void VariableBody::drop_deferred() const {
  if (const Ref<const Deferred> deferred = std::exchange(deferred_, nullptr)) deferred->unwatch();
}

}  // namespace renga
