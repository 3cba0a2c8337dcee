#include "ops/convolution/algorithm_cache.h"

#include <mutex>

namespace renga {

void (*algorithm_observer)(const std::string& problem, const std::string& algorithm) = nullptr;

namespace {

std::mutex mutex;

// Never destroyed: threads may still run operations while the process exits.
AlgorithmCache& cache() {
  static auto* const algorithms = new AlgorithmCache;
  return *algorithms;
}

}  // namespace

std::string cached_algorithm(const std::string& problem,
                             const std::function<const char*()>& select) {
  std::string algorithm;
  {
    const std::lock_guard lock(mutex);
    const auto found = cache().find(problem);
    if (found != cache().end()) return found->second;
    algorithm = cache().emplace(problem, select()).first->second;
  }
  if (algorithm_observer != nullptr) algorithm_observer(problem, algorithm);
  return algorithm;
}

AlgorithmCache algorithm_cache() {
  const std::lock_guard lock(mutex);
  return cache();
}

void load_algorithms(const AlgorithmCache& loaded) {
  const std::lock_guard lock(mutex);
  for (const auto& [problem, algorithm] : loaded) cache()[problem] = algorithm;
}

void clear_algorithms() {
  const std::lock_guard lock(mutex);
  cache().clear();
}

}  // namespace renga
