// Memory that the ranks of a node share, and updates of parameters in it.
#include "collectives/board.h"
#include "collectives/update.h"
#include "communicator.h"

namespace renga {

Array Communicator::window(std::int64_t bytes, const Issue& issue) {
  require<std::invalid_argument>(bytes >= 0, "window: expected a size, got ", bytes);
  Call call = Call("window").with(Shape{bytes}, Dtype::uint8);
  Array result = empty({bytes}, Dtype::uint8);
  start(call, issue, [&](const Turn& turn) {
    agree(turn);
    Board* board = transport_->board();
    if (board == nullptr) return;
    const int size = board->size();
    if (auto memory = transport_->shared_memory(Windows::bytes_for(bytes, size))) {
      result = windows_.add(std::move(memory), bytes, board->place(), size);
    }
  });
  return result;
}

std::vector<Array> Communicator::place(const std::vector<Array>& xs, const Issue& issue) {
  constexpr std::int64_t line = 64;
  std::vector<std::int64_t> offsets{0};
  for (const Array& x : xs) {
    const std::int64_t bytes = x.size() * x.itemsize();
    offsets.push_back(offsets.back() + (bytes + line - 1) / line * line);
  }
  const Array memory = window(offsets.back(), issue);
  if (places({memory}) == 0) return {};
  std::vector<Array> placed;
  for (std::size_t i = 0; i < xs.size(); ++i) {
    std::byte* const data = memory.data() + offsets[i];
    const auto bytes = static_cast<std::size_t>(xs[i].size() * xs[i].itemsize());
    const Ref<Storage> storage(new Storage(data, bytes, {}, [memory] {}));
    placed.emplace_back(storage, data, xs[i].shape(),
                        row_major_strides(xs[i].shape(), xs[i].itemsize()), xs[i].dtype());
    copy(xs[i], placed.back());
  }
  return placed;
}

void Communicator::update(const std::vector<Update>& updates, const Issue& issue) {
  std::vector<Array> arrays;
  for (const Update& update : updates) {
    const std::vector<Array> of_one = by_board::arrays_of(update);
    arrays.insert(arrays.end(), of_one.begin(), of_one.end());
  }
  const Windows::Found found = windows_.find(arrays);
  require<std::invalid_argument>(!found.arrays.empty() && common_board() != nullptr,
                                 "update: expected arrays in windows of one node's ranks");
  Call call = Call("update").with(arrays, arrays[0].dtype()).in_window(found.places);
  start(call, issue, [=, this](const Turn& turn) {
    by_board::update(turn, *common_board(), updates, found.arrays);
  });
}

}  // namespace renga
