// Description of a collective call, in a form that other ranks can read and compare.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tensor/array.h"
#include "tensor/error.h"

namespace renga {

// Plain bytes: calls are compared across processes. Unused bytes are zero.
struct Call {
  char op[16] = {};
  char detail[8] = {};             // "sum", "max"; empty where there is none
  std::int32_t peer = -1;          // the root, or the source or destination of a message
  std::int32_t dtype = -1;         // -1: ranks may differ
  std::int32_t ndim = -1;          // -1: ranks may differ in shape
  std::int32_t window_layout = 0;  // where in windows the arrays are; 0: in ordinary memory
  std::int32_t arrays = 1;         // number of arrays
  std::int32_t shapes_hash = 0;    // of several arrays
  std::int64_t shape[Shape::capacity] = {};
  std::int64_t sequence = 0;  // number of this collective on its communicator, from 1
  char site[104] = {};        // "train.py:31"; not compared

  explicit Call(const char* name = "");
  Call& with(const Shape& shape, Dtype dtype);
  // A call with several arrays has the number of all elements as its `shape`.
  Call& with(const std::vector<Array>& xs, Dtype dtype);
  Call& with_detail(const char* text);
  Call& with_peer(int rank);
  Call& in_windows(std::int32_t layout);
  Call& at(const std::string& call_site);

  // "all_reduce sum float32 (2, 3)"
  std::string text() const;
  std::string text_and_site() const;
  // Whether all fields but the call site are equal.
  bool matches(const Call& other) const;
  // A 64-bit hash of what matches() compares.
  std::uint64_t digest() const;
};

// The ranks called different collectives. Nothing was moved, so the communicator can still be used.
class CallMismatch : public InvalidType {
 public:
  using InvalidType::InvalidType;
};

// Throws CallMismatch, naming two ranks, unless all calls match. `calls` is in rank order.
void require_matching(const std::vector<Call>& calls);

}  // namespace renga
