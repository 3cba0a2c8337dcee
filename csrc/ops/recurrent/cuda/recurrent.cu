#include "ops/recurrent/kernels.h"
#include "tensor/elements.cu.h"

namespace renga {
namespace {

template <class T, class Cell>
struct Unit {
  Cell cell;
  __device__ void operator()(std::byte* const* p) const {
    Compute<T> in[Cell::inputs], out[Cell::outputs];
    for (int k = 0; k < Cell::inputs; ++k) in[k] = cuda::load<T>(p[Cell::outputs + k]);
    cell(in, out);
    for (int k = 0; k < Cell::outputs; ++k) cuda::store<T>(p[k], out[k]);
  }
};

struct CudaMap {
  template <std::size_t N, class Cell>
  static void map_units(const std::array<Array, N>& operands, const Cell& cell) {
    std::array<const Array*, N> all;
    for (std::size_t k = 0; k < N; ++k) all[k] = &operands[k];
    visit_dtype(operands[0].dtype(), [&]<class T>(Type<T>) {
      if constexpr (is_floating<T>) cuda::for_each_element<N>(all, Unit<T, Cell>{cell});
    });
  }
};

[[maybe_unused]] const bool registered =
    recurrent_kernels.add(cuda::number(), CellKernels<CudaMap>::table);

}  // namespace
}  // namespace renga
