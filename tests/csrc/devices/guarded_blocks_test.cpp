#include "devices/guarded_blocks.h"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstdint>

using namespace renga;

namespace {

// Whether the system reads a byte there, without an access of this process.
bool is_mapped(const void* at) {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const bool is_written = write(ends[1], at, 1) == 1;
  CHECK((is_written || errno == EFAULT));
  close(ends[0]);
  close(ends[1]);
  return is_written;
}

// The signal that ends a process which writes `at` and releases the block.
int signal_after_write(char* at, void* block, std::size_t bytes) {
  const pid_t child = fork();
  if (child == 0) {
    close(STDERR_FILENO);
    std::signal(SIGABRT, SIG_DFL);
    *at = 1;
    release_guarded_block(block, bytes);
    _exit(0);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

}  // namespace

TEST_CASE("guarded blocks are aligned, hold NaN and end at an unmapped page") {
  for (std::size_t bytes : {0, 4, 64, 100, 4096, 4100, 1 << 20}) {
    auto* const block = static_cast<char*>(take_guarded_block(bytes));
    CHECK(reinterpret_cast<std::uintptr_t>(block) % 64 == 0);
    CHECK(std::all_of(block, block + bytes, [](char byte) { return byte == '\xff'; }));
    if (bytes >= 4) CHECK(std::isnan(*reinterpret_cast<float*>(block)));
    char* const end = block + (bytes + 63) / 64 * 64;
    if (bytes > 0) CHECK(is_mapped(end - 1));
    CHECK_FALSE(is_mapped(end));
    release_guarded_block(block, bytes);
  }
}

TEST_CASE("a write beside a guarded block ends the process when the block is released") {
  const std::size_t bytes = 100;
  auto* const block = static_cast<char*>(take_guarded_block(bytes));
  CHECK(signal_after_write(block, block, bytes) == 0);
  CHECK(signal_after_write(block + bytes - 1, block, bytes) == 0);
  CHECK(signal_after_write(block + bytes, block, bytes) == SIGABRT);
  CHECK(signal_after_write(block - 1, block, bytes) == SIGABRT);
  release_guarded_block(block, bytes);
}
