#include "ops/indexing/index_check.h"

#include <algorithm>
#include <string>

#include "ops/indexing/indexing.h"

namespace renga {
namespace {

void require_integers(const char* op, const char* name, const Array& indices) {
  require(!is_float(indices.dtype()) && indices.dtype() != Dtype::bool_, op,
          ": expected integers for ", name, ", got ", indices.dtype());
}

}  // namespace

Array checked_indices(const char* op, const char* name, const Array& indices, std::int64_t n,
                      Device device, std::optional<std::int64_t> ignored) {
  require_integers(op, name, indices);
  if (indices.device().is_meta()) return cast(indices, Dtype::int64);
  // As int64, 2^64 - 1 is -1, which unsigned numbers never are.
  const bool wraps = indices.dtype() == Dtype::uint64;
  if (wraps && ignored.value_or(0) < 0) ignored.reset();
  const auto check = indices.device() == device ? indexing_kernels.on(device).check : nullptr;
  if (check != nullptr && n > 0) {
    const Array given = contiguous(cast(indices, Dtype::int64));
    const Array on_device = empty(indices.shape(), Dtype::int64, device);
    check(given, {op, name, n, ignored}, on_device);
    return on_device;
  }
  const Array checked = empty(indices.shape(), Dtype::int64);
  copy(indices, checked);
  const auto* begin = checked.as<std::int64_t>();
  const auto* end = begin + checked.size();
  const auto allowed = [n, ignores = ignored.has_value(), other = ignored.value_or(0)](auto i) {
    return static_cast<bool>(((i >= 0) & (i < n)) | (ignores & (i == other)));
  };
  bool all_allowed = true;  // without an early end, so that the compiler can use vectors
  for (const auto* i = begin; i != end; ++i) all_allowed &= allowed(*i);
  if (!all_allowed) [[unlikely]] {
    const std::int64_t found = *std::find_if_not(begin, end, allowed);
    fail<std::out_of_range>(
        op, ": expected ", name, " from 0 to ", n - 1, ", got ",
        wraps ? std::to_string(static_cast<std::uint64_t>(found)) : std::to_string(found));
  }
  return to_device(checked, device);
}

Array wrapped_indices(const char* op, const char* name, const Array& indices, std::int64_t n,
                      Device device) {
  require_integers(op, name, indices);
  if (indices.device().is_meta()) return cast(indices, Dtype::int64);
  const Array checked = empty(indices.shape(), Dtype::int64);
  copy(indices, checked);
  auto* const begin = checked.as<std::int64_t>();
  auto* const end = begin + checked.size();
  // As int64, large uint64 are negative.
  const std::int64_t least = indices.dtype() == Dtype::uint64 ? 0 : -n;
  bool all_allowed = true;  // without an early end, so that the compiler can use vectors
  for (auto* i = begin; i != end; ++i) {
    all_allowed &= static_cast<bool>((*i >= least) & (*i < n));
    *i += *i < 0 ? n : 0;
  }
  if (!all_allowed) [[unlikely]] {
    copy(indices, checked);
    const std::int64_t found =
        *std::find_if(begin, end, [&](std::int64_t i) { return i < least || i >= n; });
    fail<std::out_of_range>(op, ": expected ", name, " from ", least, " to ", n - 1, ", got ",
                            found);
  }
  return to_device(checked, device);
}

}  // namespace renga
