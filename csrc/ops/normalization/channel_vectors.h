// A batch normalization computes these vectors for each channel between its passes over x. The
// formulas of one channel are shared by the kernels of all devices; each step is rounded, on the
// CPU.
#pragma once

#include <cmath>

#include "devices/host_device.h"
#include "devices/kernel_table.h"
#include "tensor/views.h"

namespace renga {

// GroupVectors has what group normalization makes of the channels of all samples, each with the
// numbers of its group.
struct GroupVectors {
  Array mean, inv_std, scale, beta;
  std::int64_t groups;    // of a sample
  std::int64_t channels;  // of a group
};

// Vectors over channels, dense and of one dtype.
struct ChannelVectorKernels {
  // inv_std = 1 / sqrt(var + eps), scale = gamma inv_std
  void (*scale)(const Array& var, const Array& gamma, double eps, const Array& inv_std,
                const Array& scale);
  // running = decay running + factor vector
  void (*average)(const Array& vector, double decay, double factor, const Array& running);
  // Makes, of the sums of g and of g (x - mean), ggamma = sum_g_x inv_std and what input_grad
  // takes.
  void (*slopes)(const Array& sum_g, const Array& sum_g_x, const Array& inv_std, const Array& scale,
                 double weight, const Array& ggamma, const Array& shift, const Array& slope);
  // Makes the vectors from the moments of groups, or of as many parts of each.
  void (*group_scale)(const Array& mean, const Array& var, const Array& gamma, const Array& beta,
                      double eps, const GroupVectors& vectors);
  // Makes what input_grad takes from sums of each sample.
  void (*group_slopes)(const Array& sum_g, const Array& sum_g_x, const GroupVectors& vectors,
                       double weight, const Array& shift, const Array& slope);
  // Makes the gradients over channels from sums of each sample.
  void (*group_parameters)(const Array& sum_g, const Array& sum_g_x, const Array& inv_std,
                           const Array& ggamma, const Array& gbeta);
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
    shift[c] = sum_g[c] * weight * scale[c];
    slope[c] = scale[c] * g * inv_std[c] * weight;
  }
};

// GroupScale computes the vectors of group k, of all samples' groups. Vectors over channels are of
// the channels of each sample; gamma and beta are of one sample's.
template <class S>
struct GroupScale {
  const S *mean_of, *var_of;  // of the group's parts of one size
  const S *gamma, *beta;
  std::int64_t parts, channels, groups;
  S eps;
  S *mean, *inv_std, *scale, *shift;
  RENGA_HOST_DEVICE void operator()(std::int64_t k) const {
    double average = 0, variance = 0;
    for (std::int64_t i = k * parts; i < (k + 1) * parts; ++i) {
      average += static_cast<double>(mean_of[i]);
    }
    average /= static_cast<double>(parts);
    for (std::int64_t i = k * parts; i < (k + 1) * parts; ++i) {
      const double distance = static_cast<double>(mean_of[i]) - average;
      variance += static_cast<double>(var_of[i]) + distance * distance;
    }
    const S inverse = S(1) / std::sqrt(static_cast<S>(variance / static_cast<double>(parts)) + eps);
    for (std::int64_t i = 0; i < channels; ++i) {
      const std::int64_t at = k * channels + i, c = k % groups * channels + i;
      mean[at] = static_cast<S>(average);
      inv_std[at] = inverse;
      scale[at] = gamma[c] * inverse;
      shift[at] = beta[c];
    }
  }
};

template <class S>
struct GroupSlopes {
  const S *sum_g, *sum_g_x, *inv_std, *scale;
  std::int64_t channels;
  double weight;
  S *shift, *slope;
  RENGA_HOST_DEVICE void operator()(std::int64_t k) const {
    double g = 0, g_x = 0;
    for (std::int64_t i = k * channels; i < (k + 1) * channels; ++i) {
      g += static_cast<double>(scale[i] * sum_g[i]);
      g_x += static_cast<double>(scale[i] * sum_g_x[i]);
    }
    for (std::int64_t i = k * channels; i < (k + 1) * channels; ++i) {
      shift[i] = static_cast<S>(g * weight);
      slope[i] = static_cast<S>(g_x * weight) * inv_std[i] * inv_std[i];
    }
  }
};

// The gradients of gamma and beta at channel c.
template <class S>
struct GroupParameters {
  const S *sum_g, *sum_g_x, *inv_std;
  std::int64_t samples, channels;
  S *ggamma, *gbeta;
  RENGA_HOST_DEVICE void operator()(std::int64_t c) const {
    double gamma = 0, beta = 0;
    for (std::int64_t i = c; i < samples * channels; i += channels) {
      gamma += static_cast<double>(sum_g_x[i] * inv_std[i]);
      beta += static_cast<double>(sum_g[i]);
    }
    ggamma[c] = static_cast<S>(gamma);
    gbeta[c] = static_cast<S>(beta);
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
  return {
      [](const Array& var, const Array& gamma, double eps, const Array& inv_std,
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
      },
      [](const Array& mean, const Array& var, const Array& gamma, const Array& beta, double eps,
         const GroupVectors& vectors) {
        if (mean.size() == 0) return;
        const std::int64_t channels = vectors.channels;
        const Array groups = slice_view(vectors.mean, 0, 0, vectors.mean.size() / channels);
        visit_floats(mean, [&]<class S>(Type<S>) {
          Run{}(groups, GroupScale<S>{mean.as<const S>(), var.as<const S>(), gamma.as<const S>(),
                                      beta.as<const S>(), mean.size() / groups.size(), channels,
                                      vectors.groups, static_cast<S>(eps), vectors.mean.as<S>(),
                                      vectors.inv_std.as<S>(), vectors.scale.as<S>(),
                                      vectors.beta.as<S>()});
        });
      },
      [](const Array& sum_g, const Array& sum_g_x, const GroupVectors& vectors, double weight,
         const Array& shift, const Array& slope) {
        if (shift.size() == 0) return;
        const Array groups = slice_view(shift, 0, 0, shift.size() / vectors.channels);
        visit_floats(shift, [&]<class S>(Type<S>) {
          const S *const g = sum_g.as<const S>(), *const g_x = sum_g_x.as<const S>();
          Run{}(groups,
                GroupSlopes<S>{g, g_x, vectors.inv_std.as<const S>(), vectors.scale.as<const S>(),
                               vectors.channels, weight, shift.as<S>(), slope.as<S>()});
        });
      },
      [](const Array& sum_g, const Array& sum_g_x, const Array& inv_std, const Array& ggamma,
         const Array& gbeta) {
        if (ggamma.size() == 0) return;
        visit_floats(ggamma, [&]<class S>(Type<S>) {
          const S *const g = sum_g.as<const S>(), *const g_x = sum_g_x.as<const S>();
          Run{}(ggamma,
                GroupParameters<S>{g, g_x, inv_std.as<const S>(), sum_g.size() / ggamma.size(),
                                   ggamma.size(), ggamma.as<S>(), gbeta.as<S>()});
        });
      }};
}

}  // namespace channel_vectors
}  // namespace renga
