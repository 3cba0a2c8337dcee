// Operations read these settings of the process beside their arguments. A thread can override each
// of them. renga.config and renga.global_config show them in Python.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

namespace renga {

// Products of float32 arrays have a precision, as config.compute_precision names it: IEEE float32;
// bf16x3, three bfloat16 products each; one bfloat16 product. Sums are in float32 in any case.
enum class Precision : std::uint8_t { highest, high, medium };

// The value of a setting, or none. Threads may read it while another one sets it.
template <class T>
class Choice {
 public:
  constexpr Choice() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): a setting is written as its value.
  constexpr Choice(T value) : value_(static_cast<std::int8_t>(value)) {}

  std::optional<T> get() const {
    const std::int8_t value = value_.load(std::memory_order_relaxed);
    return value < 0 ? std::nullopt : std::optional(static_cast<T>(value));
  }
  void set(std::optional<T> value) {
    value_.store(value ? static_cast<std::int8_t>(*value) : std::int8_t{-1},
                 std::memory_order_relaxed);
  }

 private:
  std::atomic<std::int8_t> value_{-1};
};

struct Settings {
  Choice<bool> backprop;  // whether operations are recorded in the graph
  Choice<Precision> precision;
  // Products round float32 activations to bfloat16 and return bfloat16 (config.dtype is
  // mixed_bfloat16). Weights and their gradients are always float32.
  Choice<bool> bfloat16_activations;
  // Batch normalizations do not update running statistics: a recomputed forward pass has updated
  // them before.
  Choice<bool> recomputing;
  // Convolutions on CUDA have three settings: whether they run on cuDNN; whether sums have one
  // order; whether the engine is the fastest one of a first run, not the one that cuDNN expects to
  // be.
  Choice<bool> cudnn, deterministic, autotune;
  // Modules of C++ programs train: dropout drops, and batch normalizations use the statistics of
  // the batch.
  Choice<bool> training;
};

extern constinit Settings default_settings;
// This thread has set these settings itself. With initial-exec, the address is an offset from the
// thread register, without a call.
[[gnu::tls_model("initial-exec")]] extern constinit thread_local Settings thread_settings;

// A setting of this thread: its own value, else the process's.
template <class T>
T current(Choice<T> Settings::*setting) {
  const std::optional<T> own = (thread_settings.*setting).get();
  return own ? *own : *(default_settings.*setting).get();
}

inline bool backprop_enabled() { return current(&Settings::backprop); }
inline Precision compute_precision() { return current(&Settings::precision); }
inline bool bfloat16_activations() { return current(&Settings::bfloat16_activations); }
inline bool is_training() { return current(&Settings::training); }

// Sets one of this thread's settings for a scope.
template <class T>
class SettingScope {
 public:
  SettingScope(Choice<T> Settings::*setting, T value)
      : setting_(thread_settings.*setting), before_(setting_.get()) {
    setting_.set(value);
  }
  ~SettingScope() { setting_.set(before_); }
  SettingScope(const SettingScope&) = delete;
  SettingScope& operator=(const SettingScope&) = delete;

 private:
  Choice<T>& setting_;
  std::optional<T> before_;
};

// Bytes that cuDNN may use on top of its operands, in all threads.
extern constinit std::atomic<std::int64_t> cudnn_workspace_bytes;

}  // namespace renga
