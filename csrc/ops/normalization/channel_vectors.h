// What a batch normalization computes for each channel between its passes over x. The formulas of
// one channel are shared by the kernels of all devices; each step is rounded, on the CPU.
#pragma once

#include <cmath>

#include "devices/host_device.h"
#include "devices/kernel_table.h"
#include "tensor/array.h"

namespace renga {

// Vectors over channels, dense and of one dtype.
struct ChannelVectorKernels {
  // inv_std = 1 / sqrt(var + eps), scale = gamma inv_std
  void (*scale)(const Array& var, const Array& gamma, double eps, const Array& inv_std,
                const Array& scale);
  // running = decay running + factor vector
  void (*average)(const Array& vector, double decay, double factor, const Array& running);
  // Of the sums of g and of g (x - mean): ggamma = sum_g_x inv_std, and what input_grad takes.
  void (*slopes)(const Array& sum_g, const Array& sum_g_x, const Array& inv_std, const Array& scale,
                 double weight, const Array& ggamma, const Array& shift, const Array& slope);
};
extern KernelTable<ChannelVectorKernels> channel_vector_kernels;

namespace channel_vectors {

template <class S>
struct Scale {
  const S *var, *gamma;
  S eps;
  S *inv_std, *scale;
  RENGA_HOST_DEVICE void operator()(std::int64_t c) const {
    const S inverse = S(1) / std::sqrt(var[c] + eps);
    inv_std[c] = inverse;
    scale[c] = gamma[c] * inverse;
  }
};

template <class S>
struct Average {
  const S* vector;
  S decay, factor;
  S* running;
  RENGA_HOST_DEVICE void operator()(std::int64_t c) const {
    const S added = vector[c] * factor;
    running[c] = running[c] * decay + added;
  }
};

template <class S>
struct Slopes {
  const S *sum_g, *sum_g_x, *inv_std, *scale;
  S weight;
  S *ggamma, *shift, *slope;
  RENGA_HOST_DEVICE void operator()(std::int64_t c) const {
    const S g = sum_g_x[c] * inv_std[c];
    ggamma[c] = g;
    shift[c] = sum_g[c] * weight;
    slope[c] = scale[c] * g * inv_std[c] * weight;
  }
};

// Calls visit(Type<S>{}) for the dtype of statistics.
template <class Visit>
void visit_floats(const Array& x, const Visit& visit) {
  x.dtype() == Dtype::float64 ? visit(Type<double>{}) : visit(Type<float>{});
}

// The kernels of a device on which run(x, f) calls f(c) for each channel c of a vector x.
template <class Run>
ChannelVectorKernels kernels_by() {
  return {[](const Array& var, const Array& gamma, double eps, const Array& inv_std,
             const Array& scale) {
            visit_floats(var, [&]<class S>(Type<S>) {
              Run{}(var, Scale<S>{var.as<const S>(), gamma.as<const S>(), static_cast<S>(eps),
                                  inv_std.as<S>(), scale.as<S>()});
            });
          },
          [](const Array& vector, double decay, double factor, const Array& running) {
            visit_floats(vector, [&]<class S>(Type<S>) {
              Run{}(vector, Average<S>{vector.as<const S>(), static_cast<S>(decay),
                                       static_cast<S>(factor), running.as<S>()});
            });
          },
          [](const Array& sum_g, const Array& sum_g_x, const Array& inv_std, const Array& scale,
             double weight, const Array& ggamma, const Array& shift, const Array& slope) {
            visit_floats(inv_std, [&]<class S>(Type<S>) {
              Run{}(inv_std,
                    Slopes<S>{sum_g.as<const S>(), sum_g_x.as<const S>(), inv_std.as<const S>(),
                              scale.as<const S>(), static_cast<S>(weight), ggamma.as<S>(),
                              shift.as<S>(), slope.as<S>()});
            });
          }};
}

}  // namespace channel_vectors
}  // namespace renga
