#include "collectives/buffers.h"

#include <algorithm>

#include "tensor/overlap.h"

namespace renga {

namespace {

bool is_identical(const Array& x, const Array& y) {
  return x.data() == y.data() && x.shape() == y.shape() && x.strides() == y.strides();
}

}  // namespace

bool are_direct(const std::vector<Array>& xs, IsDirect is_direct) {
  return std::ranges::all_of(xs, [=](const Array& x) { return !x.defined() || is_direct(x); });
}

std::vector<Array> send_buffers(std::vector<Array> xs, IsDirect is_direct) {
  for (Array& x : xs) {
    if (x.defined() && !is_direct(x)) x = contiguous(x);
  }
  return xs;
}

std::vector<Array> receive_buffers(std::vector<Array> ys, IsDirect is_direct) {
  for (Array& y : ys) {
    if (y.defined() && !is_direct(y)) y = empty(y.shape(), y.dtype(), y.device());
  }
  return ys;
}

void copy_received(const std::vector<Array>& buffers, const std::vector<Array>& ys) {
  for (std::size_t i = 0; i < ys.size(); ++i) {
    if (ys[i].defined() && buffers[i].data() != ys[i].data()) copy(buffers[i], ys[i]);
  }
}

std::vector<Array> safe_inputs(const std::vector<Array>& xs, const std::vector<Array>& ys,
                               int own) {
  const MemoryRanges written(ys);
  const bool results_overlap = written.overlap();
  std::vector<Array> result;
  result.reserve(xs.size());
  for (std::size_t i = 0; i < xs.size(); ++i) {
    const Array& x = xs[i];
    const Array& y = ys[own < 0 ? i : static_cast<std::size_t>(own)];
    const bool safe = !x.defined() || x.size() == 0 ||
                      (!results_overlap && (!written.overlap(x) || is_identical(x, y)));
    result.push_back(safe ? x : copy_of(x));
  }
  return result;
}

}  // namespace renga
