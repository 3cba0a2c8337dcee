// Predictions of many parameters in one parallel loop over the elements of all of them.
#include "optimizers/prediction.h"

#include <algorithm>
#include <array>
#include <functional>

#include "devices/gil_release.h"
#include "devices/parallel.h"
#include "optimizers/rules.h"
#include "simd/blocked_loop.h"
#include "tensor/strided_loop.h"

namespace renga {
namespace {

// Predicts the elements [begin, end) of a parameter, in the order of its loop.
using Predict = std::function<void(std::int64_t begin, std::int64_t end)>;

// The elements of a parameter among those of all, and their prediction.
struct Part {
  std::int64_t begin;
  std::int64_t end;
  Predict predict;
};

// y = rule(x...) for a run of n elements; y is of dtype Y, x... are of dtype X.
template <class Y, class X, std::size_t N, class Rule, std::size_t... K>
void predict_run(const std::array<std::byte*, N>& p, const std::array<std::int64_t, N>& step,
                 std::int64_t n, bool streaming, const Rule& rule, std::index_sequence<K...>) {
  using C = Compute<X>;
  simd::OutputBlocks<Y> y(p[0], step[0], streaming);
  std::array<simd::InputBlocks<X>, N - 1> x{simd::InputBlocks<X>(p[1 + K], step[1 + K], n)...};
  for (std::int64_t begin = 0; begin < n; begin += simd::kBlock) {
    const std::int64_t m = std::min(simd::kBlock, n - begin);
    C* const to = y.at(begin);
    const std::array<const C*, N - 1> from{x[K].at(begin, m)...};
#pragma omp simd
    for (std::int64_t i = 0; i < m; ++i) to[i] = rule(from[K][i]...);
    y.put(begin, m);
  }
}

// The prediction of y by rule(x...).
template <class Y, class X, class Rule, class... Arrays>
Predict element_wise(const Rule& rule, bool streaming, const Array& y, const Arrays&... x) {
  constexpr int N = 1 + sizeof...(Arrays);
  const auto loop = make_loop<N>({&y, &x...});
  return [=](std::int64_t begin, std::int64_t end) {
    for_each_run(loop, begin, end, [&](std::int64_t n, const auto& p, const auto& step) {
      predict_run<Y, X>(p, step, n, streaming && n >= simd::kBlock, rule,
                        std::make_index_sequence<N - 1>());
    });
  };
}

template <class Y, class X>
Predict prediction_by(const ScaledStep& step, const Prediction& given, double steps,
                      bool streaming) {
  using C = Compute<X>;
  const auto rule = [scale = C(steps * step.scale)](C x, C d) { return x + scale * d; };
  return element_wise<Y, X>(rule, streaming, given.y, given.values(), step.d);
}

template <class Y, class X>
Predict prediction_by(const AdamMoments& moments, const Prediction& given, double steps,
                      bool streaming) {
  using C = Compute<X>;
  const auto [alpha, beta1, beta2, eps, eta, weight_decay_rate, lower, upper] = moments.options;
  const rules::Adam<C> adam(alpha, beta1, beta2, eps, eta * steps, weight_decay_rate, lower, upper);
  const auto rule = [adam](C x, C m, C v) {
    adam.move(x, m, v);
    return x;
  };
  return element_wise<Y, X>(rule, streaming, given.y, given.values(), moments.m, moments.v);
}

template <class Y, class X>
Predict prediction_by(std::monostate, const Prediction& given, double, bool streaming) {
  return element_wise<Y, Y>([](Compute<Y> x) { return x; }, streaming, given.y, given.x);
}

template <class Y, class X>
Predict prediction_of(const Prediction& given, double steps, bool streaming) {
  // A step that is not finite must not change what is predicted for no step.
  if (steps == 0) return prediction_by<Y, X>(std::monostate(), given, steps, streaming);
  const auto visit = [&](const auto& step) {
    return prediction_by<Y, X>(step, given, steps, streaming);
  };
  return std::visit(visit, given.step);
}

Predict prediction_of(const Prediction& given, double steps, bool streaming) {
  if (given.master.defined()) return prediction_of<float16, float>(given, steps, streaming);
  return visit_dtype(given.x.dtype(), [&]<class T>(Type<T>) -> Predict {
    if constexpr (is_floating<T>) return prediction_of<T, T>(given, steps, streaming);
    return {};
  });
}

void predict_cpu(std::span<const Prediction> predictions, double steps) {
  std::int64_t bytes = 0, size = 0;
  for (const Prediction& given : predictions) bytes += given.y.size() * given.y.itemsize();
  std::vector<Part> parts;
  for (const Prediction& given : predictions) {
    if (given.y.size() == 0) continue;
    const std::int64_t begin = (size + 15) / 16 * 16;  // parallel_for divides at multiples of 16
    size = begin + given.y.size();
    parts.push_back({begin, size, prediction_of(given, steps, pays_streaming(bytes))});
  }
  const GilRelease work(size);
  constexpr std::int64_t kCost = 8;  // per element: Adam's rules read three arrays and write one
  parallel_for(size, kCost, [&](std::int64_t begin, std::int64_t end) {
    auto part = std::ranges::upper_bound(parts, begin, {}, &Part::end);
    for (; part != parts.end() && part->begin < end; ++part) {
      part->predict(std::max(begin, part->begin) - part->begin,
                    std::min(end, part->end) - part->begin);
    }
  });
}

[[maybe_unused]] const bool registered = prediction_kernels.add(0, {predict_cpu});

}  // namespace
}  // namespace renga
