#include "ops/convolution/algorithm_cache.h"

#include <mutex>

namespace renga {

void (*algorithm_observer)(const std::string& problem, const std::string& algorithm) = nullptr;

namespace {

// A program with ever new shapes must not fill the memory: a full table of what was selected is
// emptied. What was loaded stays.
constexpr std::size_t kMostSelected = 4096;

std::mutex mutex;

// Never destroyed: threads may still run operations while the process exits.
struct Caches {
  AlgorithmCache loaded, selected;
};
Caches& caches() {
  static auto* const all = new Caches;
  return *all;
}

}  // namespace

std::string cached_algorithm(const std::string& problem,
                             const std::function<const char*()>& select) {
  std::string algorithm;
  {
    const std::lock_guard lock(mutex);
    auto& [loaded, selected] = caches();
    for (const AlgorithmCache* cache : {&loaded, &selected}) {
      const auto found = cache->find(problem);
      if (found != cache->end()) return found->second;
    }
    if (selected.size() == kMostSelected) selected.clear();
    algorithm = selected.emplace(problem, select()).first->second;
  }
  if (algorithm_observer != nullptr) algorithm_observer(problem, algorithm);
  return algorithm;
}

AlgorithmCache algorithm_cache() {
  const std::lock_guard lock(mutex);
  AlgorithmCache all = caches().loaded;
  all.insert(caches().selected.begin(), caches().selected.end());
  return all;
}

void load_algorithms(const AlgorithmCache& loaded) {
  const std::lock_guard lock(mutex);
  for (const auto& [problem, algorithm] : loaded) caches().loaded[problem] = algorithm;
}

void clear_algorithms() {
  const std::lock_guard lock(mutex);
  caches() = {};
}

}  // namespace renga
