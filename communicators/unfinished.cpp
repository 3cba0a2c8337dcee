#include "unfinished.h"

#include <exception>
#include <mutex>

namespace renga {

namespace {

struct Unfinished {
  Transfers transfers;
  std::vector<Array> arrays;
};

// Never destroyed: MPI may use the memory until the process ends.
struct Store {
  std::mutex mutex;
  std::vector<Unfinished> open;
  std::vector<std::vector<Array>> kept;
};

Store& store() {
  static Store* const only = new Store;
  return *only;
}

thread_local bool in_use = false;

bool is_over(Unfinished& unfinished) {
  std::erase_if(unfinished.transfers, [](const auto& transfer) { return transfer->cancel(); });
  return unfinished.transfers.empty();
}

}  // namespace

void drop_finished(Transfers& transfers) {
  for (auto it = transfers.begin(); it != transfers.end();) {
    bool over = false;
    try {
      over = (*it)->test();
    } catch (...) {
      transfers.erase(it);
      throw;
    }
    it = over ? transfers.erase(it) : it + 1;
  }
}

void give_up(Transfers transfers, std::vector<Array> arrays) {
  Unfinished unfinished{std::move(transfers), std::move(arrays)};
  std::vector<Unfinished> over;  // destroyed after the lock is given back
  const std::lock_guard lock(store().mutex);
  auto& open = store().open;
  for (std::size_t i = 0; i < open.size();) {
    if (is_over(open[i])) {
      over.push_back(std::move(open[i]));
      open.erase(open.begin() + static_cast<std::ptrdiff_t>(i));
    } else {
      ++i;
    }
  }
  if (is_over(unfinished)) {
    over.push_back(std::move(unfinished));
    return;
  }
  in_use = in_use || unfinished.arrays.empty();
  open.push_back(std::move(unfinished));
}

bool memory_in_use() { return in_use; }

Kept::Kept(std::vector<Array> arrays)
    : arrays_(std::move(arrays)), errors_(std::uncaught_exceptions()) {}

Kept::~Kept() {
  if (!in_use || std::uncaught_exceptions() <= errors_) return;
  const std::lock_guard lock(store().mutex);
  store().kept.push_back(std::move(arrays_));
}

}  // namespace renga
