// Arrays in memory that all ranks of a node map, so that collectives on them need no copies.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "tensor/array.h"

namespace renga {

// Where each rank of the node has an array, by local rank.
using PeerPointers = std::vector<std::byte*>;

// Knows which windows there are, and which arrays lie in them.
class Windows {
 public:
  // This rank's array of `bytes` in `memory`, which has one for each of `ranks` local ranks. Every
  // rank of the node adds the same windows in the same order.
  Array add(std::shared_ptr<std::byte> memory, std::int64_t bytes, int local_rank, int ranks);
  // The size of the memory that this takes.
  static std::size_t bytes_for(std::int64_t bytes, int ranks);

  // Returns the same part of another rank's array in the window of `x`; undefined if `x` is in
  // none.
  Array of_peer(const Array& x, int local_rank);

  struct Found {
    std::vector<PeerPointers> peers;  // of each array; empty unless all are in windows
    std::int32_t layout =
        0;  // equal on ranks whose arrays have the same offsets; 0: not in windows
  };
  Found find(const std::vector<Array>& xs);

 private:
  struct Window {
    int number;
    std::byte* data;  // of this rank
    std::int64_t bytes;
    int local_rank;
    int ranks;
    std::weak_ptr<std::byte> memory;
  };
  const Window* window_of(const Array& x) const;
  // Others may get their addresses.
  void forget_freed();

  int count_ = 0;
  std::vector<Window> windows_;
};

}  // namespace renga
