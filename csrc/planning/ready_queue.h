// Tasks that wait for their resources only.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace renga::planning {

// Takes tasks by the time at which they are ready, and then by their order. A simulation spends
// half of its time here. So it is a heap whose nodes have four children, with half as many levels
// as std::priority_queue, and compares whole numbers, without branches that cannot be predicted.
class ReadyQueue {
 public:
  bool empty() const { return items_.empty(); }

  void push(double ready, std::uint64_t order, int task) {
    const Item item{Key{std::bit_cast<std::uint64_t>(ready)} << 64 | order, task};
    std::size_t at = items_.size();
    items_.push_back(item);
    for (; at > 0 && item.key < items_[(at - 1) / 4].key; at = (at - 1) / 4) {
      items_[at] = items_[(at - 1) / 4];
    }
    items_[at] = item;
  }

  // Removes the first task.
  int pop() {
    const int task = items_.front().task;
    const Item last = items_.back();
    items_.pop_back();
    if (!items_.empty()) sift_down(last);
    return task;
  }

 private:
  // The bits of the time, which has their order as it is not negative, and the order.
  __extension__ using Key = unsigned __int128;
  struct Item {
    Key key;
    int task;
  };

  // Returns which of two neighbours has the first item.
  std::size_t least_of_two(std::size_t at) const {
    return at + static_cast<std::size_t>(items_[at + 1].key < items_[at].key);
  }

  // Places an item from the root on.
  void sift_down(const Item& item) {
    const std::size_t size = items_.size();
    std::size_t at = 0;
    for (std::size_t child = 1; child < size; child = 4 * at + 1) {
      std::size_t first = child;
      if (child + 4 <= size) {
        const std::size_t a = least_of_two(child), b = least_of_two(child + 2);
        first = items_[b].key < items_[a].key ? b : a;
      } else {
        for (std::size_t other = child + 1; other < size; ++other) {
          first = items_[other].key < items_[first].key ? other : first;
        }
      }
      if (!(items_[first].key < item.key)) break;
      items_[at] = items_[first];
      at = first;
    }
    items_[at] = item;
  }

  std::vector<Item> items_;
};

}  // namespace renga::planning
