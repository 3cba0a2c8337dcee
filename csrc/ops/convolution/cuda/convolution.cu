#include <memory>

#include "devices/cuda/libraries.h"
#include "devices/gil_release.h"
#include "ops/convolution/convolution.h"

namespace renga {
namespace {

template <class Descriptor, auto create, auto destroy>
struct Owned {
  Descriptor handle = nullptr;
  Owned() { RENGA_CUDA(create(&handle)); }
  ~Owned() { destroy(handle); }
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
};

cudnnDataType_t type_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::float16:
      return CUDNN_DATA_HALF;
    case Dtype::bfloat16:
      return CUDNN_DATA_BFLOAT16;
    case Dtype::float64:
      return CUDNN_DATA_DOUBLE;
    default:
      return CUDNN_DATA_FLOAT;
  }
}

struct Image
    : Owned<cudnnTensorDescriptor_t, cudnnCreateTensorDescriptor, cudnnDestroyTensorDescriptor> {
  explicit Image(const Array& x) {
    RENGA_CUDA(cudnnSetTensor4dDescriptor(handle, CUDNN_TENSOR_NCHW, type_of(x.dtype()), x.shape(0),
                                          x.shape(1), x.shape(2), x.shape(3)));
  }
};

struct Filter
    : Owned<cudnnFilterDescriptor_t, cudnnCreateFilterDescriptor, cudnnDestroyFilterDescriptor> {
  explicit Filter(const Array& W) {
    RENGA_CUDA(cudnnSetFilter4dDescriptor(handle, type_of(W.dtype()), CUDNN_TENSOR_NCHW, W.shape(0),
                                          W.shape(1), W.shape(2), W.shape(3)));
  }
};

struct Operation : Owned<cudnnConvolutionDescriptor_t, cudnnCreateConvolutionDescriptor,
                         cudnnDestroyConvolutionDescriptor> {
  Operation(const Window& w, Dtype dtype) {
    const bool wide = dtype == Dtype::float64;
    RENGA_CUDA(cudnnSetConvolution2dDescriptor(handle, w.pad[0], w.pad[1], w.stride[0], w.stride[1],
                                               w.dilate[0], w.dilate[1], CUDNN_CROSS_CORRELATION,
                                               wide ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT));
    RENGA_CUDA(cudnnSetConvolutionGroupCount(handle, w.groups));
    // Without this, float32 would be multiplied in TF32.
    const bool exact = wide || dtype == Dtype::float32;
    RENGA_CUDA(cudnnSetConvolutionMathType(handle, exact ? CUDNN_FMA_MATH : CUDNN_DEFAULT_MATH));
  }
};

// cuDNN scales results by float64 numbers for float64, by float32 numbers for all other dtypes.
struct Scale {
  Scale(double value, Dtype dtype) : narrow(value), wide(value), is_wide(dtype == Dtype::float64) {}
  const void* get() const { return is_wide ? static_cast<const void*>(&wide) : &narrow; }
  float narrow;
  double wide;
  bool is_wide;
};

// The three passes: cuDNN's functions that select an algorithm and run it.
struct Forward {
  using Algorithms = cudnnConvolutionFwdAlgoPerf_t;
  static constexpr auto select = cudnnGetConvolutionForwardAlgorithm_v7;
  static constexpr auto run = cudnnConvolutionForward;
};
struct InputGrad {
  using Algorithms = cudnnConvolutionBwdDataAlgoPerf_t;
  static constexpr auto select = cudnnGetConvolutionBackwardDataAlgorithm_v7;
  static constexpr auto run = cudnnConvolutionBackwardData;
};
struct WeightGrad {
  using Algorithms = cudnnConvolutionBwdFilterAlgoPerf_t;
  static constexpr auto select = cudnnGetConvolutionBackwardFilterAlgorithm_v7;
  static constexpr auto run = cudnnConvolutionBackwardFilter;
};

// `First`, `Second` and `Result` describe the operands a, b and to.
template <class Pass, class First, class Second, class Result>
void convolve(const Array& first_operand, const Array& second_operand, const Array& to,
              const Window& window) {
  const GilRelease work;
  if (to.size() == 0) return;
  if (first_operand.size() == 0 || second_operand.size() == 0) return fill(to, 0);
  const cuda::Use use(to.device());
  const Array a = contiguous(first_operand), b = contiguous(second_operand);
  const bool in_place = to.is_contiguous() && to.dtype() == a.dtype();
  const Array y = in_place ? to : empty(to.shape(), a.dtype(), to.device());
  const First first(a);
  const Second second(b);
  const Result result(y);
  const Operation operation(window, y.dtype());

  typename Pass::Algorithms best;
  int found = 0;
  RENGA_CUDA(Pass::select(cuda::cudnn(), first.handle, second.handle, operation.handle,
                          result.handle, 1, &found, &best));
  require<std::runtime_error>(found == 1, "convolution: cuDNN has no algorithm for shapes ",
                              a.shape(), " and ", b.shape());
  const Array workspace =
      empty({static_cast<std::int64_t>(best.memory)}, Dtype::uint8, to.device());
  const Scale one(1, y.dtype()), zero(0, y.dtype());
  RENGA_CUDA(Pass::run(cuda::cudnn(), one.get(), first.handle, a.data(), second.handle, b.data(),
                       operation.handle, best.algo, workspace.data(), best.memory, zero.get(),
                       result.handle, y.data()));
  if (!in_place) copy(y, to);
}

void forward(const Array& x, const Array& W, const Array& y, const Window& window, const Array& b,
             PackedWeightCache*) {
  convolve<Forward, Image, Filter, Image>(x, cast(W, x.dtype()), y, window);
  if (b.defined()) add_bias(y, b);
}

// cuDNN takes the filter first here.
void input_grad(const Array& gy, const Array& W, const Array& gx, const Window& window,
                const Array& b, PackedWeightCache*) {
  convolve<InputGrad, Filter, Image, Image>(cast(W, gy.dtype()), gy, gx, window);
  if (b.defined()) add_bias(gx, b);
}

void weight_grad(const Array& gy, const Array& x, const Array& gW, const Window& window) {
  convolve<WeightGrad, Image, Image, Filter>(x, gy, gW, window);
}

[[maybe_unused]] const bool registered =
    convolution_kernels.add(cuda::number(), {forward, input_grad, weight_grad});

}  // namespace
}  // namespace renga
