#include <memory>
#include <optional>
#include <vector>

#include "devices/cuda/event.h"
#include "devices/cuda/recording.h"
#include "tensor/copy.h"
#include "tensor/cuda/transpose.cu.h"

namespace renga {
namespace {

template <class To, class From>
struct Convert {
  __device__ void operator()(std::byte* const* p) const {
    *reinterpret_cast<To*>(p[0]) = convert<To>(*reinterpret_cast<const From*>(p[1]));
  }
};

template <class T>
struct Fill {
  T value;
  __device__ void operator()(std::byte* const* p) const { *reinterpret_cast<T*>(p[0]) = value; }
};

void copy_cuda(const Array& from, const Array& to) {
  if (cuda::copy_by_tiles(from, to)) return;
  visit_dtype(from.dtype(), [&]<class From>(Type<From>) {
    visit_dtype(to.dtype(), [&]<class To>(Type<To>) {
      cuda::for_each_element<2>({&to, &from}, Convert<To, From>{});
    });
  });
}

void fill_cuda(const Array& x, double value) {
  visit_dtype(x.dtype(), [&]<class T>(Type<T>) {
    cuda::for_each_element<1>({&x}, Fill<T>{convert<T>(value)});
  });
}

struct alignas(16) Vector {
  std::uint64_t words[2];
};

// Rows of adjoining vectors of an array, and where they are copied to; steps are in bytes.
struct RowCopy {
  std::int64_t rows, vectors;
  const std::byte* from;
  std::int64_t from_step;
  std::byte* to;
  std::int64_t to_step;
};

// As many copies as a kernel's arguments can hold.
struct RowCopies {
  static constexpr int kMost = 80;
  int count = 0;
  RowCopy copies[kMost] = {};
};

// Blocks handle the copies in turn.
template <class Word>
__global__ void copy_rows(RowCopies all) {
  const auto count = static_cast<unsigned>(all.count);
  const RowCopy& copy = all.copies[blockIdx.x % count];
  const std::int64_t step = std::int64_t{gridDim.x / count} * blockDim.x;
  std::int64_t i = std::int64_t{blockIdx.x / count} * blockDim.x + threadIdx.x;
  for (; i < copy.rows * copy.vectors; i += step) {
    const std::int64_t row = i / copy.vectors, at = i % copy.vectors * std::int64_t{sizeof(Word)};
    *reinterpret_cast<Word*>(copy.to + row * copy.to_step + at) =
        *reinterpret_cast<const Word*>(copy.from + row * copy.from_step + at);
  }
}

// A copy in vectors of one byte; none if it has no rows of adjoining elements.
std::optional<RowCopy> row_copy(const Array& from, const Array& to) {
  if (from.dtype() != to.dtype() || from.device() != to.device()) return {};
  const auto loop = cuda::make_element_loop<2>({&to, &from});
  const std::int64_t item = to.itemsize();
  RowCopy copy{1, item, loop.data[1], 0, loop.data[0], 0};
  if (loop.ndim == 0) return copy;
  const int last = loop.ndim - 1;
  if (last > 1 || loop.strides[0][last] != item || loop.strides[1][last] != item) return {};
  copy.vectors = loop.extents[last] * item;
  if (last == 0) return copy;
  copy.rows = loop.extents[0];
  copy.to_step = loop.strides[0][0];
  copy.from_step = loop.strides[1][0];
  return copy;
}

template <class Word>
void launch_copies(Device device, std::span<RowCopy> copies) {
  for (RowCopy& copy : copies) copy.vectors /= static_cast<std::int64_t>(sizeof(Word));
  for (std::size_t begin = 0; begin < copies.size(); begin += RowCopies::kMost) {
    const auto some =
        copies.subspan(begin, std::min<std::size_t>(copies.size() - begin, RowCopies::kMost));
    RowCopies all{static_cast<int>(some.size())};
    std::int64_t most = 0;
    for (std::size_t i = 0; i < some.size(); ++i) {
      all.copies[i] = some[i];
      most = std::max(most, some[i].rows * some[i].vectors);
    }
    constexpr unsigned kMostBlocks = 1 << 16;
    const auto count = static_cast<unsigned>(some.size());
    cuda::Grid grid = cuda::grid_for(most);
    grid.blocks = std::min(grid.blocks, kMostBlocks / count) * count;
    cuda::launch(device, grid, copy_rows<Word>, all);
  }
}

bool join_rows_cuda(std::span<const Array* const> xs, const Array& y, int axis) {
  std::vector<RowCopy> copies;
  std::uintptr_t bits = 0;  // of all addresses, steps and lengths: vectors divide them
  const bool are_rows = visit_places(xs, y, axis, [&](const Array& from, const Array& to) {
    const std::optional<RowCopy> copy = row_copy(from, to);
    if (!copy) return false;
    bits |=
        reinterpret_cast<std::uintptr_t>(copy->from) | reinterpret_cast<std::uintptr_t>(copy->to);
    bits |= static_cast<std::uintptr_t>(copy->from_step | copy->to_step | copy->vectors);
    copies.push_back(*copy);
    return true;
  });
  if (!are_rows) return false;
  const Device device = y.device();
  if (bits % 16 == 0) {
    launch_copies<Vector>(device, copies);
  } else if (bits % 4 == 0) {
    launch_copies<std::uint32_t>(device, copies);
  } else if (bits % 2 == 0) {
    launch_copies<std::uint16_t>(device, copies);
  } else {
    launch_copies<std::uint8_t>(device, copies);
  }
  return true;
}

// Copies on the stream of `to`, between what precedes and what follows on that of `from`.
void copy_across_cuda(const Array& from, const Array& to) {
  const int source = from.device().index, target = to.device().index;
  const auto bytes = static_cast<std::size_t>(from.size() * from.itemsize());
  if (bytes == 0) return;
  cuda::require_no_recording("a copy to another device");
  const auto event_after = [](int index) {
    const cuda::Use use(index);
    auto event = std::make_unique<cuda::Event>(cudaEventDisableTiming);
    event->record(cuda::stream());
    return event;
  };
  const auto ready = event_after(source);
  {
    const cuda::Use use(target);
    ready->hold(cuda::stream());
    RENGA_CUDA(cudaMemcpyPeerAsync(to.data(), target, from.data(), source, bytes, cuda::stream()));
  }
  const auto copied = event_after(target);
  const cuda::Use use(source);
  copied->hold(cuda::stream());
}

[[maybe_unused]] const bool registered =
    copy_kernels.add(cuda::number(), {copy_cuda, fill_cuda, copy_across_cuda, join_rows_cuda});

}  // namespace
}  // namespace renga
