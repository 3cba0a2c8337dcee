#include "collectives/window.h"

namespace renga {

namespace {

// Arrays of different ranks share no page.
std::int64_t spacing(std::int64_t bytes) { return (bytes + 4095) / 4096 * 4096; }

}  // namespace

std::size_t Windows::bytes_for(std::int64_t bytes, int size) {
  return static_cast<std::size_t>(spacing(bytes) * size);
}

Array Windows::add(std::shared_ptr<std::byte> memory, std::int64_t bytes, int place, int size) {
  std::byte* mine = memory.get() + place * spacing(bytes);
  windows_.push_back({++count_, mine, bytes, place, size, memory});
  const Ref<Storage> storage(
      new Storage(mine, static_cast<std::size_t>(bytes), {}, [memory = std::move(memory)] {}));
  return {storage, mine, Shape{bytes}, Strides{1}, Dtype::uint8};
}

const Windows::Window* Windows::window_of(const Array& x) const {
  for (const Window& window : windows_) {
    const std::byte* end = x.data() + x.size() * x.itemsize();
    if (x.data() >= window.mine && end <= window.mine + window.bytes) return &window;
  }
  return nullptr;
}

Windows::Found Windows::find(const std::vector<Array>& xs) {
  std::erase_if(windows_, [](const Window& window) { return window.memory.expired(); });
  if (windows_.empty()) return {};
  Found found;
  std::uint32_t hash = 2166136261u;  // FNV-1a
  for (const Array& x : xs) {
    const Window* window = x.is_contiguous() ? window_of(x) : nullptr;
    if (window == nullptr) return {};
    const std::int64_t offset = x.data() - window->mine;
    for (const std::int64_t part : {std::int64_t{window->number}, offset, offset >> 32}) {
      hash = (hash ^ static_cast<std::uint32_t>(part)) * 16777619u;
    }
    Peers& peers = found.arrays.emplace_back();
    for (int r = 0; r < window->size; ++r) {
      peers.push_back(x.data() + (r - window->place) * spacing(window->bytes));
    }
  }
  found.places = static_cast<std::int32_t>(hash | 1u);
  return found;
}

}  // namespace renga
