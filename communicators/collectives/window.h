// Arrays in memory that all ranks of a board see, so that a reduction need not copy them.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "tensor/array.h"

namespace renga {

// The same bytes on every rank, in the order of places.
using Peers = std::vector<std::byte*>;

class Windows {
 public:
  // This rank's array of `bytes` in `memory`, in which every place has one. Every rank of the board
  // calls this in turn.
  Array add(std::shared_ptr<std::byte> memory, std::int64_t bytes, int place, int size);
  // How much memory arrays of `bytes` for `size` ranks take.
  static std::size_t bytes_for(std::int64_t bytes, int size);

  struct Found {
    std::vector<Peers> arrays;  // empty unless all lie in windows
    std::int32_t places = 0;    // the same number on ranks whose arrays lie in the same places
  };
  Found find(const std::vector<Array>& xs);

 private:
  struct Window {
    int number;
    std::byte* mine;
    std::int64_t bytes;
    int place;
    int size;
    std::weak_ptr<std::byte> memory;
  };
  const Window* window_of(const Array& x) const;

  int count_ = 0;
  std::vector<Window> windows_;
};

}  // namespace renga
