// Matrices of 16-bit numbers in shared memory and in the registers of a warp.
#include "kernel.h"

namespace cuda_standin {
namespace {

unsigned lane_of_thread() { return threadIdx.x % 32; }

const std::byte* checked(std::uintptr_t address, std::size_t bytes) {
  if (address % bytes != 0) fault("expected the address of an aligned word or vector");
  return reinterpret_cast<const std::byte*>(address);
}

// The lower or the upper 16 bits of word `word` of a lane in the last exchange.
std::uint16_t number_of(unsigned lane, unsigned word, unsigned part) {
  return static_cast<std::uint16_t>(exchanged(lane)[word / 2] >> (word % 2 * 32 + part * 16));
}

}  // namespace

void copy_later(std::uintptr_t to, const void* from, bool exist, std::size_t bytes) {
  checked(to, bytes);
  if (exist) checked(reinterpret_cast<std::uintptr_t>(from), bytes);
  late_copies().add({reinterpret_cast<void*>(to), exist ? from : nullptr, bytes});
}

void end_copies() { late_copies().end_group(); }

void wait_for_copies(int groups) { late_copies().wait(static_cast<std::size_t>(groups)); }

void load_matrices(std::uintptr_t row, bool are_transposed, std::uint32_t (&words)[4]) {
  checked(row, 16);
  exchange(0xffffffffu, {row}, 0);
  const unsigned lane = lane_of_thread();
  for (unsigned i = 0; i < 4; ++i) {
    std::uint16_t pair[2];
    for (unsigned part = 0; part < 2; ++part) {
      const unsigned column = lane % 4 * 2 + part;
      const unsigned from = are_transposed ? column : lane / 4;
      const unsigned at = are_transposed ? lane / 4 : column;
      std::memcpy(&pair[part], checked(exchanged(8 * i + from)[0], 16) + 2 * at, 2);
    }
    words[i] = pair[0] | std::uint32_t{pair[1]} << 16;
  }
}

void add_product(const std::uint32_t (&a)[4], std::uint32_t b0, std::uint32_t b1, float (&sums)[4],
                 float (*number)(std::uint16_t bits)) {
  const auto pair = [](std::uint32_t low, std::uint32_t high) {
    return low | std::uint64_t{high} << 32;
  };
  exchange(0xffffffffu, {pair(a[0], a[1]), pair(a[2], a[3]), pair(b0, b1)}, 0);
  const unsigned lane = lane_of_thread();
  for (unsigned e = 0; e < 4; ++e) {
    const unsigned column = lane % 4 * 2 + e % 2;
    for (unsigned k = 0; k < 16; ++k) {
      const unsigned from = k % 8 / 2, later = k / 8;
      sums[e] += number(number_of(lane / 4 * 4 + from, 2 * later + e / 2, k % 2)) *
                 number(number_of(column * 4 + from, 4 + later, k % 2));
    }
  }
}

}  // namespace cuda_standin
