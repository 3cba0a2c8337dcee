#include "collectives/buffers.h"

namespace renga {

std::vector<Array> send_buffers(const std::vector<Array>& xs, IsDirect is_direct) {
  std::vector<Array> buffers;
  for (const Array& x : xs) {
    buffers.push_back(!x.defined() || is_direct(x) ? x : contiguous(x));
  }
  return buffers;
}

std::vector<Array> receive_buffers(const std::vector<Array>& ys, IsDirect is_direct) {
  std::vector<Array> buffers;
  for (const Array& y : ys) {
    buffers.push_back(!y.defined() || is_direct(y) ? y : empty(y.shape(), y.dtype()));
  }
  return buffers;
}

void copy_received(const std::vector<Array>& buffers, const std::vector<Array>& ys) {
  for (std::size_t i = 0; i < ys.size(); ++i) {
    if (ys[i].defined() && buffers[i].data() != ys[i].data()) copy(buffers[i], ys[i]);
  }
}

}  // namespace renga
