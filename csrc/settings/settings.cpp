#include "settings/settings.h"

#include <memory>

namespace renga {

constinit Settings default_settings{.backprop = true,
                                    .precision = Precision::highest,
                                    .bfloat16_activations = false,
                                    .recomputing = false,
                                    .cudnn = true,
                                    .deterministic = false,
                                    .autotune = false};
constinit thread_local Settings* thread_settings = nullptr;
constinit std::atomic<std::int64_t> cudnn_workspace_bytes{std::int64_t{1} << 30};

Settings& make_thread_settings() {
  struct End {
    void operator()(Settings* settings) const {
      thread_settings = nullptr;
      delete settings;
    }
  };
  if (thread_settings == nullptr) {
    thread_local const std::unique_ptr<Settings, End> own_settings(new Settings);
    thread_settings = own_settings.get();
  }
  return *thread_settings;
}

}  // namespace renga
