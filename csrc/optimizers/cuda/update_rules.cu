// Updates of one parameter by one launch, or of many.
#include <algorithm>
#include <cstring>

#include "optimizers/kernels.h"
#include "tensor/elements.cu.h"

namespace renga {
namespace {

// `p` points at x, g and the states; the gradient is changed by its scale and decay only.
template <class T, class Rule, int N>
struct UpdateElement {
  Rule given;
  Compute<T> scale, decay;
  Mask mask;
  __device__ void operator()(std::byte* const* p) const {
    using C = Compute<T>;
    Rule rule = given;
    if (!mask.admits(rule)) return;
    C v[N];
    for (int k = 0; k < N; ++k) v[k] = cuda::load<T>(p[k]);
    if (scale != 1) {
      rules::Scale<C>{scale}(v[1]);
      v[1] = rounded(p[1], v[1]);
    }
    if (decay != 0) {
      rules::AddScaled<C>{decay}(v[1], v[0]);
      v[1] = rounded(p[1], v[1]);
    }
    call(rule, v, std::make_integer_sequence<int, N>());
    for (int k = 0; k < N; ++k) {
      if (k != 1) cuda::store<T>(p[k], v[k]);
    }
  }
  // Stores a number.
  __device__ static Compute<T> rounded(std::byte* p, Compute<T> number) {
    cuda::store<T>(p, number);
    return cuda::load<T>(p);
  }
  template <int... K>
  __device__ static void call(const Rule& rule, Compute<T>* v, std::integer_sequence<int, K...>) {
    rule(v[K]...);
  }
};

// Dense operands of several updates of one kind, as many as a kernel's arguments can hold.
template <class Body, int N>
struct Tensors {
  static_assert(std::is_trivially_copyable_v<Body>);
  struct Tensor {
    std::byte* data[N];
    std::int64_t size;
    alignas(Body) std::byte body[sizeof(Body)];  // as rules have no default
  };
  static constexpr std::size_t kArguments = 4096;
  static constexpr int kMost = static_cast<int>((kArguments - 16) / sizeof(Tensor));
  int count = 0;
  Tensor tensors[kMost] = {};
};

// Blocks handle the tensors in turn.
template <class T, class Body, int N>
__global__ void update_tensors(Tensors<Body, N> all) {
  const auto count = static_cast<unsigned>(all.count);
  const auto& tensor = all.tensors[blockIdx.x % count];
  const Body body = *reinterpret_cast<const Body*>(tensor.body);
  std::byte* data[N];
  for (int k = 0; k < N; ++k) data[k] = tensor.data[k];
  const std::int64_t size = tensor.size, step = std::int64_t{gridDim.x / count} * blockDim.x;
  std::int64_t i = std::int64_t{blockIdx.x / count} * blockDim.x + threadIdx.x;
  for (; i < size; i += step) {
    std::byte* p[N];
    for (int k = 0; k < N; ++k) p[k] = data[k] + i * std::int64_t{sizeof(T)};
    body(p);
  }
}

// The bytes of a launch's arguments are then those of its operands alone, which tools can check.
template <class Body>
void clear_padding([[maybe_unused]] Body& body) {
#if __has_builtin(__builtin_clear_padding)
  __builtin_clear_padding(&body);
#endif
}

// Updates that wait for their launch, of parameters on one device.
template <class T, class Body, int N>
class Launches {
 public:
  explicit Launches(Device device) : device_(device) {}

  void add(const cuda::ElementLoop<N>& operands, Body body) {
    auto& tensor = all_.tensors[all_.count++];
    std::copy(operands.data, operands.data + N, tensor.data);
    tensor.size = operands.size;
    clear_padding(body);
    std::memcpy(tensor.body, &body, sizeof(Body));
    largest_ = std::max(largest_, tensor.size);
    if (all_.count == all_.kMost) launch();
  }

  void launch() {
    if (all_.count == 0) return;
    constexpr std::int64_t kOfThread = 4, kMostBlocks = 1 << 10;  // of each tensor
    constexpr std::int64_t kOfBlock = kOfThread * cuda::kThreads;
    const std::int64_t blocks = (largest_ + kOfBlock - 1) / kOfBlock;
    const auto count = static_cast<unsigned>(all_.count);
    cuda::launch(device_, {static_cast<unsigned>(std::min(blocks, kMostBlocks)) * count},
                 update_tensors<T, Body, N>, all_);
    all_ = {};
    largest_ = 0;
  }

 private:
  Device device_;
  Tensors<Body, N> all_;
  std::int64_t largest_ = 0;
};

template <class T, int N>
bool is_dense(const cuda::ElementLoop<N>& operands) {
  if (operands.size == 0 || operands.ndim > 1) return false;
  return operands.size == 1 || std::ranges::all_of(operands.strides, [](const auto& strides) {
           return strides[0] == sizeof(T);
         });
}

struct CudaKernels {
  template <template <class> class Functor, std::size_t kStates, std::size_t kOptions>
  static void update(std::span<const UpdateCall> calls) {
    visit_dtype(calls[0].x.dtype(), [&]<class T>(Type<T>) {
      if constexpr (is_floating<T>) {
        using Rule = Functor<Compute<T>>;
        update_all<T, 2 + kStates, UpdateElement<T, Rule, 2 + kStates>>(
            calls, [](const UpdateCall& call) { return make_rule<Rule, kOptions>(call.options); });
      }
    });
  }

  template <class T, int N, class Body, class MakeRule>
  static void update_all(std::span<const UpdateCall> calls, const MakeRule& rule_of) {
    const auto body_of = [&](const UpdateCall& call) {
      const Gradient& g = call.g;
      return Body{rule_of(call), static_cast<Compute<T>>(g.scale), static_cast<Compute<T>>(g.decay),
                  Mask(g.mask)};
    };
    if (calls.size() == 1) {
      return cuda::for_each_element<N>(operands_of<N>(calls[0]), body_of(calls[0]));
    }
    Launches<T, Body, N> launches(calls[0].x.device());
    for (const UpdateCall& call : calls) {
      const auto operands = operands_of<N>(call);
      const cuda::ElementLoop<N> loop = cuda::make_element_loop<N>(operands);
      if (is_dense<T>(loop)) {
        launches.add(loop, body_of(call));
      } else {
        cuda::for_each_element<N>(operands, body_of(call));
      }
    }
    launches.launch();
  }
};

[[maybe_unused]] const bool registered =
    update_kernels.add(cuda::number(), rule_kernels<CudaKernels>());

}  // namespace
}  // namespace renga
