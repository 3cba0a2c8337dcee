#include "settings/settings.h"

namespace renga {

constinit Settings default_settings{.backprop = true,
                                    .precision = Precision::highest,
                                    .bfloat16_activations = false,
                                    .recomputing = false,
                                    .cudnn = true,
                                    .deterministic = false,
                                    .autotune = false,
                                    .training = true};
constinit thread_local Settings thread_settings;
constinit std::atomic<std::int64_t> cudnn_workspace_bytes{std::int64_t{1} << 30};

}  // namespace renga
