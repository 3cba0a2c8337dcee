#include "ops/convolution/algorithm_cache.h"

#include <mutex>

namespace renga {

void (*kernel_observer)(const std::string& problem, const std::string& kernel) = nullptr;

namespace {

std::mutex mutex;

KernelChoices& choices() {
  static auto* const all = new KernelChoices;
  return *all;
}

}  // namespace

std::string chosen_kernel(const std::string& problem, const std::function<const char*()>& choose) {
  std::string kernel;
  {
    const std::lock_guard lock(mutex);
    const auto found = choices().find(problem);
    if (found != choices().end()) return found->second;
    kernel = choices().emplace(problem, choose()).first->second;
  }
  if (kernel_observer != nullptr) kernel_observer(problem, kernel);
  return kernel;
}

KernelChoices kernel_choices() {
  const std::lock_guard lock(mutex);
  return choices();
}

void load_kernel_choices(const KernelChoices& loaded) {
  const std::lock_guard lock(mutex);
  for (const auto& [problem, kernel] : loaded) choices()[problem] = kernel;
}

void forget_kernel_choices() {
  const std::lock_guard lock(mutex);
  choices().clear();
}

}  // namespace renga
