#include "shared_memory/windows.h"

namespace renga {

namespace {

// The distance between two ranks' arrays: they share no page.
std::int64_t stride_of(std::int64_t bytes) { return (bytes + 4095) / 4096 * 4096; }

}  // namespace

std::size_t Windows::bytes_for(std::int64_t bytes, int ranks) {
  return static_cast<std::size_t>(stride_of(bytes) * ranks);
}

Array Windows::add(std::shared_ptr<std::byte> memory, std::int64_t bytes, int local_rank,
                   int ranks) {
  std::byte* data = memory.get() + local_rank * stride_of(bytes);
  windows_.push_back({++count_, data, bytes, local_rank, ranks, memory});
  const Ref<Storage> storage(
      new Storage(data, static_cast<std::size_t>(bytes), {}, [memory = std::move(memory)] {}));
  return {storage, data, Shape{bytes}, Strides{1}, Dtype::uint8};
}

const Windows::Window* Windows::window_of(const Array& x) const {
  for (const Window& window : windows_) {
    const std::byte* end = x.data() + x.size() * x.itemsize();
    if (x.data() >= window.data && end <= window.data + window.bytes) return &window;
  }
  return nullptr;
}

void Windows::forget_freed() {
  std::erase_if(windows_, [](const Window& window) { return window.memory.expired(); });
}

Array Windows::of_peer(const Array& x, int local_rank) {
  forget_freed();
  const Window* const window = x.is_contiguous() ? window_of(x) : nullptr;
  if (window == nullptr) return {};
  std::byte* const data = x.data() + (local_rank - window->local_rank) * stride_of(window->bytes);
  const auto bytes = static_cast<std::size_t>(x.size() * x.itemsize());
  const Ref<Storage> storage(new Storage(data, bytes, {}, [memory = window->memory.lock()] {}));
  return {storage, data, x.shape(), x.strides(), x.dtype()};
}

Windows::Found Windows::find(const std::vector<Array>& xs) {
  forget_freed();
  if (windows_.empty()) return {};
  Found found;
  std::uint32_t hash = 2166136261u;  // FNV-1a
  for (const Array& x : xs) {
    const Window* window = x.is_contiguous() ? window_of(x) : nullptr;
    if (window == nullptr) return {};
    const std::int64_t offset = x.data() - window->data;
    for (const std::int64_t value : {std::int64_t{window->number}, offset, offset >> 32}) {
      hash = (hash ^ static_cast<std::uint32_t>(value)) * 16777619u;
    }
    PeerPointers& pointers = found.peers.emplace_back();
    for (int r = 0; r < window->ranks; ++r) {
      pointers.push_back(x.data() + (r - window->local_rank) * stride_of(window->bytes));
    }
  }
  found.layout = static_cast<std::int32_t>(hash | 1u);
  return found;
}

}  // namespace renga
