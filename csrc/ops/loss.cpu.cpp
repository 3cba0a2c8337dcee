#include "ops/loss.h"

#include <cmath>

#include "devices/long_work.h"
#include "ops/softmax.h"
#include "tensor/strided_loop.h"

namespace renga {
namespace {

// Walks over samples: body(label, weight, log_p pointer, sample pointer).
template <class T, class Body>
void each_sample(const Array& log_p, const Array& t, const Array& weight, std::int64_t ignore,
                 const Array& sample, const Body& body) {
  const Array rows = select_view(log_p, 1, 0);
  const std::int64_t classes = log_p.shape(1);
  parallel_walk(make_loop<3>({&sample, &t, &rows}), classes,
                [&](std::int64_t n, const auto& p, const auto& s) {
                  for (std::int64_t i = 0; i < n; ++i) {
                    const auto label = *reinterpret_cast<const std::int64_t*>(p[1] + i * s[1]);
                    const bool ignored = label == ignore;
                    require<std::out_of_range>(ignored || (label >= 0 && label < classes),
                                               "softmax_cross_entropy: expected labels from 0 to ",
                                               classes - 1, ", got ", label);
                    Compute<T> w = ignored ? 0 : 1;
                    if (weight.defined() && !ignored) {
                      w = static_cast<Compute<T>>(weight.as<T>()[label]);
                    }
                    body(ignored ? 0 : label, w, p[2] + i * s[2], p[0] + i * s[0]);
                  }
                });
}

void nll_cpu(const Array& x, const Array& t, const Array& weight, std::int64_t ignore,
             const Array& log_p, const Array& loss) {
  softmax_kernels.on(x.device()).softmax(x, 1, true, log_p);
  const LongWork work(x.size());
  const std::int64_t step = log_p.strides()[1];
  visit_dtype(x.dtype(), [&]<class T>(Type<T>) {
    if constexpr (is_floating<T>) {
      each_sample<T>(log_p, t, weight, ignore, loss,
                     [=](std::int64_t label, Compute<T> w, const std::byte* row, std::byte* out) {
                       const auto v =
                           static_cast<Compute<T>>(*reinterpret_cast<const T*>(row + label * step));
                       *reinterpret_cast<T*>(out) = T(w == 0 ? Compute<T>(0) : -w * v);
                     });
    }
  });
}

void nll_grad_cpu(const Array& log_p, const Array& t, const Array& weight, std::int64_t ignore,
                  const Array& gy, const Array& gx) {
  const LongWork work(gx.size());
  const std::int64_t classes = gx.shape(1), step = gx.strides()[1], from_step = log_p.strides()[1];
  const Array rows = select_view(gx, 1, 0);
  visit_dtype(gx.dtype(), [&]<class T>(Type<T>) {
    if constexpr (is_floating<T>) {
      // The factor of each sample first, then one walk over rows of log_p and gx together.
      const Array factor = empty(gy.shape(), gy.dtype());
      copy(gy, factor);
      each_sample<T>(log_p, t, weight, ignore, factor,
                     [](std::int64_t, Compute<T> w, const std::byte*, std::byte* at) {
                       T& f = *reinterpret_cast<T*>(at);
                       f = T(w == 0 ? Compute<T>(0) : w * static_cast<Compute<T>>(f));
                     });
      const Array from = select_view(log_p, 1, 0);
      parallel_walk(make_loop<4>({&rows, &from, &factor, &t}), 8 * classes,
                    [&](std::int64_t n, const auto& p, const auto& s) {
                      for (std::int64_t i = 0; i < n; ++i) {
                        const auto f =
                            static_cast<Compute<T>>(*reinterpret_cast<const T*>(p[2] + i * s[2]));
                        const auto label = *reinterpret_cast<const std::int64_t*>(p[3] + i * s[3]);
                        for (std::int64_t c = 0; c < classes; ++c) {
                          const auto v = static_cast<Compute<T>>(
                              *reinterpret_cast<const T*>(p[1] + i * s[1] + c * from_step));
                          *reinterpret_cast<T*>(p[0] + i * s[0] + c * step) =
                              T(f * (std::exp(v) - Compute<T>(c == label)));
                        }
                      }
                    });
    }
  });
}

[[maybe_unused]] const bool registered = loss_kernels.add(0, {nll_cpu, nll_grad_cpu});

}  // namespace
}  // namespace renga
