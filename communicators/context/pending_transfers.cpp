#include "context/pending_transfers.h"

#include <mutex>

namespace renga {

namespace {

struct Uncancelled {
  Transfers transfers;
  std::vector<Array> arrays;
};

struct Store {
  std::mutex mutex;
  std::vector<Uncancelled> uncancelled;
};

// Never destroyed: MPI may use the memory until the process ends.
Store& store() {
  static Store* const instance = new Store;
  return *instance;
}

bool is_done(Uncancelled& entry) {
  std::erase_if(entry.transfers, [](const auto& transfer) { return transfer->cancel(); });
  return entry.transfers.empty();
}

}  // namespace

void erase_completed(Transfers& transfers) {
  for (auto it = transfers.begin(); it != transfers.end();) {
    bool done = false;
    try {
      done = (*it)->test();
    } catch (...) {
      transfers.erase(it);
      throw;
    }
    it = done ? transfers.erase(it) : it + 1;
  }
}

bool cancel(Transfers transfers, std::vector<Array> arrays) {
  Uncancelled entry{std::move(transfers), std::move(arrays)};
  std::vector<Uncancelled> done;  // destroyed after the lock is released
  const std::lock_guard lock(store().mutex);
  auto& entries = store().uncancelled;
  for (std::size_t i = 0; i < entries.size();) {
    if (is_done(entries[i])) {
      done.push_back(std::move(entries[i]));
      entries.erase(entries.begin() + static_cast<std::ptrdiff_t>(i));
    } else {
      ++i;
    }
  }
  if (is_done(entry)) {
    done.push_back(std::move(entry));
    return true;
  }
  entries.push_back(std::move(entry));
  return false;
}

}  // namespace renga
