#include "compression/compression.h"
#include "compression/cpu/kernels.h"

namespace renga {
namespace {

[[maybe_unused]] const bool registered = compression_kernels.add(
    0, {cpu::accumulate, cpu::take_largest, cpu::add_at, cpu::take_random, cpu::add_at_random,
        cpu::quantize, cpu::add_dequantized, cpu::take_signs, cpu::add_signs});

}  // namespace
}  // namespace renga
