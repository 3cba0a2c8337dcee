#include "mpi/launcher.h"

#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>

namespace renga {

void end_with_launcher() {
  static constexpr std::chrono::milliseconds interval{500};
  const char* const rank = std::getenv("PMIX_RANK");
  if (rank == nullptr) return;
  const std::string text =
      "[rank " + std::string(rank) + "] the launcher of this job has ended, this rank ends too\n";
  std::thread([launcher = getppid(), text] {
    while (getppid() == launcher) std::this_thread::sleep_for(interval);
    [[maybe_unused]] const auto written = write(STDERR_FILENO, text.data(), text.size());
    _exit(1);
  }).detach();
}

}  // namespace renga
