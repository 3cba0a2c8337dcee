// Updates of several parameters by one launch: they are held until there are as many as a launch
// can have, or until the end of update_together().
#pragma once

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "tensor/elements.cu.h"

namespace renga::cuda {

// Dense operands of several updates of one kind, as many as a kernel's arguments can hold.
template <class Body, int N>
struct Tensors {
  static_assert(std::is_trivially_copyable_v<Body>);
  struct Tensor {
    std::byte* data[N];
    std::int64_t size;
    alignas(Body) std::byte body[sizeof(Body)];  // as rules have no default
  };
  static constexpr std::size_t kArguments = 4096;
  static constexpr int kMost = static_cast<int>((kArguments - 16) / sizeof(Tensor));
  int count = 0;
  Tensor tensors[kMost] = {};
};

// Blocks handle the tensors in turn.
template <class T, class Body, int N>
__global__ void update_tensors(Tensors<Body, N> all) {
  const auto count = static_cast<unsigned>(all.count);
  const auto& tensor = all.tensors[blockIdx.x % count];
  const Body body = *reinterpret_cast<const Body*>(tensor.body);
  std::byte* data[N];
  for (int k = 0; k < N; ++k) data[k] = tensor.data[k];
  const std::int64_t size = tensor.size, step = std::int64_t{gridDim.x / count} * blockDim.x;
  std::int64_t i = std::int64_t{blockIdx.x / count} * blockDim.x + threadIdx.x;
  for (; i < size; i += step) {
    std::byte* p[N];
    for (int k = 0; k < N; ++k) p[k] = data[k] + i * std::int64_t{sizeof(T)};
    body(p);
  }
}

// The bytes of a launch's arguments are then those of its operands alone, which tools can check.
template <class Body>
void clear_padding([[maybe_unused]] Body& body) {
#if __has_builtin(__builtin_clear_padding)
  __builtin_clear_padding(&body);
#endif
}

// Updates that wait for their launch.
struct HeldUpdates {
  virtual ~HeldUpdates() = default;
  virtual void launch() = 0;
};

template <class T, class Body, int N>
struct HeldUpdatesOf final : HeldUpdates {
  void add(const ElementLoop<N>& operands, Body body, const std::array<const Array*, N>& arrays) {
    auto& tensor = all.tensors[all.count++];
    std::copy(operands.data, operands.data + N, tensor.data);
    tensor.size = operands.size;
    clear_padding(body);
    std::memcpy(tensor.body, &body, sizeof(Body));
    for (const Array* array : arrays) kept.push_back(*array);
    largest = std::max(largest, tensor.size);
    if (all.count == all.kMost) launch();
  }
  void launch() override {
    if (all.count == 0) return;
    constexpr std::int64_t kOfThread = 4, kMostBlocks = 1 << 10;  // of each tensor
    const std::int64_t blocks = (largest + kOfThread * kThreads - 1) / (kOfThread * kThreads);
    const auto count = static_cast<unsigned>(all.count);
    cuda::launch(kept[0].device(), {static_cast<unsigned>(std::min(blocks, kMostBlocks)) * count},
                 update_tensors<T, Body, N>, all);
    all = {};
    largest = 0;
    kept.clear();
  }
  Tensors<Body, N> all;
  std::int64_t largest = 0;
  std::vector<Array> kept;  // until the launch
};

// Those of a thread, by their kernel and device.
struct AllHeldUpdates {
  std::map<std::pair<const void*, int>, std::unique_ptr<HeldUpdates>> kinds;
  std::set<const std::byte*> parameters;

  void launch() {
    for (const auto& [kind, updates] : kinds) updates->launch();
    parameters.clear();
  }
};
inline thread_local AllHeldUpdates* held_updates = nullptr;

// Holds an update of operands[0], unless it is made outside of update_together() or the operands
// are not dense.
template <class T, class Body, std::size_t N>
bool hold(const std::array<const Array*, N>& operands, const Body& body) {
  constexpr int n = N;
  if (held_updates == nullptr) return false;
  const ElementLoop<n> loop = make_element_loop<n>(operands);
  const Array& x = *operands[0];
  // One parameter's updates are not for one launch.
  if (!held_updates->parameters.insert(x.data()).second) {
    held_updates->launch();
    held_updates->parameters.insert(x.data());
  }
  const auto is_dense = [&](const auto& strides) { return strides[0] == sizeof(T); };
  if (loop.size == 0 || loop.ndim > 1) return false;
  if (loop.size > 1 && !std::ranges::all_of(loop.strides, is_dense)) return false;
  const void* const kind = reinterpret_cast<const void*>(&update_tensors<T, Body, n>);
  std::unique_ptr<HeldUpdates>& updates = held_updates->kinds[{kind, x.device().index}];
  if (updates == nullptr) updates = std::make_unique<HeldUpdatesOf<T, Body, n>>();
  static_cast<HeldUpdatesOf<T, Body, n>&>(*updates).add(loop, body, operands);
  return true;
}

inline void update_together(const std::function<void()>& body) {
  AllHeldUpdates updates;
  struct Holding {
    explicit Holding(AllHeldUpdates* to) : outer(std::exchange(held_updates, to)) {}
    ~Holding() { held_updates = outer; }
    AllHeldUpdates* outer;
  };
  try {
    const Holding holding(&updates);
    body();
  } catch (...) {
    updates.launch();  // those that were made
    throw;
  }
  updates.launch();
}

}  // namespace renga::cuda
