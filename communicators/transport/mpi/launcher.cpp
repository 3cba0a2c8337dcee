#include "transport/mpi/launcher.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>

namespace renga {

namespace {

// Whether a process adopts orphans and is no launcher: the launcher has ended before this rank
// asked. In a container the launcher itself may be process 1.
bool adopts_orphans(pid_t process) {
  std::string name;
  std::getline(std::ifstream("/proc/" + std::to_string(process) + "/comm"), name);
  if (name == "systemd" || name == "init") return true;
  constexpr std::array<std::string_view, 5> launchers{"prte", "mpi", "orte", "hydra", "slurm"};
  return process == 1 && std::ranges::none_of(launchers, [&](std::string_view launcher) {
           return name.starts_with(launcher);
         });
}

}  // namespace

void end_with_launcher() {
  static constexpr std::chrono::milliseconds interval{500};
  const char* const rank = std::getenv("PMIX_RANK");
  if (rank == nullptr) return;
  const std::string text =
      "[rank " + std::string(rank) + "] the launcher of this job has ended, this rank ends too\n";
  std::thread([launcher = getppid(), text] {
    if (!adopts_orphans(launcher)) {
      while (getppid() == launcher) std::this_thread::sleep_for(interval);
    }
    [[maybe_unused]] const auto written = write(STDERR_FILENO, text.data(), text.size());
    _exit(1);
  }).detach();
}

}  // namespace renga
