#include "devices/cpu/memory.h"

#include <sys/sysinfo.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>

namespace renga {
namespace {

constexpr std::int64_t kUnknown = std::numeric_limits<std::int64_t>::max();

// Bytes that the control group allows, by version 2 or 1 of Linux's interface.
std::int64_t group_limit() {
  for (const char* path :
       {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    std::int64_t bytes = 0;
    if (std::ifstream(path) >> bytes && bytes > 0) return bytes;  // it may say "max"
  }
  return kUnknown;
}

std::int64_t measured_total() {
  struct sysinfo info = {};
  if (sysinfo(&info) != 0) return group_limit();
  const auto bytes = static_cast<std::int64_t>((info.totalram + info.totalswap) * info.mem_unit);
  return std::min(bytes, group_limit());
}

}  // namespace

std::int64_t total_memory() {
  static const std::int64_t total = measured_total();
  return total;
}

std::int64_t available_memory() {
  std::ifstream file("/proc/meminfo");
  std::int64_t available = 0;
  bool found = false;
  for (std::string line; std::getline(file, line);) {
    const bool counts = line.starts_with("MemAvailable:");
    if (!counts && !line.starts_with("SwapFree:")) continue;
    found |= counts;
    available += std::stoll(line.substr(line.find(':') + 1)) * 1024;
  }
  return found ? std::min(available, total_memory()) : total_memory();
}

}  // namespace renga
