// Arrays in memory that the ranks of a node share.
#include "communicator.h"

namespace renga {

Array Communicator::window(std::int64_t bytes, const LaunchOptions& options) {
  require<std::invalid_argument>(bytes >= 0, "window: expected a size, got ", bytes);
  const Call call = Call("window").with(Shape{bytes}, Dtype::uint8);
  Array result = empty({bytes}, Dtype::uint8);
  launch(call, options, [&](const CollectiveContext& context) {
    collectives_->barrier(context);
    if (node_segment_ == nullptr) return;
    const int ranks = node_segment_->ranks();
    if (auto memory = transport_->allocate_shared(Windows::bytes_for(bytes, ranks))) {
      result = windows_.add(std::move(memory), bytes, node_segment_->local_rank(), ranks);
    }
  });
  return result;
}

std::vector<Array> Communicator::copy_to_window(const std::vector<Array>& xs,
                                                const LaunchOptions& options) {
  constexpr std::int64_t cache_line = 64;
  std::vector<std::int64_t> offsets{0};
  for (const Array& x : xs) {
    const std::int64_t bytes = x.size() * x.itemsize();
    offsets.push_back(offsets.back() + (bytes + cache_line - 1) / cache_line * cache_line);
  }
  const Array memory = window(offsets.back(), options);
  if (find_windows({memory}).layout == 0) return {};
  std::vector<Array> copies;
  for (std::size_t i = 0; i < xs.size(); ++i) {
    std::byte* const data = memory.data() + offsets[i];
    const auto bytes = static_cast<std::size_t>(xs[i].size() * xs[i].itemsize());
    const Ref<Storage> storage(new Storage(data, bytes, {}, [memory] {}));
    copies.emplace_back(storage, data, xs[i].shape(),
                        row_major_strides(xs[i].shape(), xs[i].itemsize()), xs[i].dtype());
    copy(xs[i], copies.back());
  }
  return copies;
}

Array Communicator::window_of_peer(const Array& x, std::int64_t local_rank) {
  const int ranks = topology().intra_size;
  require<std::invalid_argument>(local_rank >= 0 && local_rank < ranks,
                                 "window_of_peer: expected a rank of this node in [0, ", ranks,
                                 "), got ", local_rank);
  const Array result = windows_.of_peer(x, static_cast<int>(local_rank));
  require<std::invalid_argument>(result.defined(), "window_of_peer: expected an array in a window");
  return result;
}

}  // namespace renga
