// What a rank asks for in a collective, in a form that other ranks can read.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tensor/array.h"

namespace renga {

// Plain bytes: calls are compared across processes. Unused bytes are zero.
struct Call {
  char op[16] = {};
  char detail[8] = {};      // "sum", "max"; empty where there is nothing to add
  std::int32_t peer = -1;   // the root, or whom a message is from or for
  std::int32_t dtype = -1;  // -1: each rank may bring its own
  std::int32_t ndim = -1;   // -1: each rank may bring its own shape
  std::int32_t window = 0;  // says where in windows the arrays lie; 0: in memory of a rank's own
  std::int32_t arrays = 1;  // how many there are
  std::int32_t layout = 0;  // a number that stands for the shapes of several arrays
  std::int64_t shape[Shape::capacity] = {};
  std::int64_t sequence = 0;  // counts the communicator's collectives from 1
  char site[104] = {};        // "train.py:31"; not compared

  explicit Call(const char* name = "");
  Call& with(const Shape& shape, Dtype dtype);
  // Of several arrays: `shape` is the number of all elements.
  Call& with(const std::vector<Array>& xs, Dtype dtype);
  Call& with_detail(const char* text);
  Call& with_peer(int rank);
  Call& in_window(std::int32_t places);
  Call& at(const std::string& place);

  // "all_reduce sum float32 (2, 3)"
  std::string text() const;
  std::string text_and_site() const;
  // Whether all but the site are the same.
  bool agrees_with(const Call& other) const;
  // A number that two calls have in common if they agree, and else all but never.
  std::uint64_t digest() const;
};

}  // namespace renga
