// Elements of arrays of any type, as the naive libraries read and write them.
#pragma once

#include <bit>
#include <cstdint>

#include "cublas_v2.h"

namespace cuda_standin {

enum class Kind { float16, bfloat16, float32, float64 };

inline std::int64_t size_of(Kind kind) {
  return kind == Kind::float64 ? 8 : kind == Kind::float32 ? 4 : 2;
}

inline double read(const void* data, Kind kind, std::int64_t i) {
  const auto at = [=]<class T>(T) { return static_cast<const T*>(data)[i]; };
  switch (kind) {
    case Kind::float16:
      return static_cast<double>(std::bit_cast<_Float16>(at(std::uint16_t{})));
    case Kind::bfloat16:
      return std::bit_cast<float>(std::uint32_t{at(std::uint16_t{})} << 16);
    case Kind::float32:
      return at(float{});
    case Kind::float64:
      break;
  }
  return at(double{});
}

inline void write(void* data, Kind kind, std::int64_t i, double value) {
  switch (kind) {
    case Kind::float16:
      static_cast<_Float16*>(data)[i] = static_cast<_Float16>(static_cast<float>(value));
      return;
    case Kind::bfloat16: {
      const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(value));
      const std::uint32_t rounded = bits + 0x7fff + (bits >> 16 & 1);
      const auto half = static_cast<std::uint16_t>(value == value ? rounded >> 16 : 0x7fc0);
      static_cast<std::uint16_t*>(data)[i] = half;
      return;
    }
    case Kind::float32:
      static_cast<float*>(data)[i] = static_cast<float>(value);
      return;
    case Kind::float64:
      static_cast<double*>(data)[i] = value;
  }
}

inline Kind kind_of(cudaDataType_t type) {
  switch (type) {
    case CUDA_R_16F:
      return Kind::float16;
    case CUDA_R_16BF:
      return Kind::bfloat16;
    case CUDA_R_32F:
      return Kind::float32;
    case CUDA_R_64F:
      break;
  }
  return Kind::float64;
}

}  // namespace cuda_standin
