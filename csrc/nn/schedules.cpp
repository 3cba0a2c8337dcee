#include "nn/schedules.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "tensor/error.h"

namespace renga::schedules {
namespace {

void require_count(const char* what, std::int64_t count) {
  require<std::invalid_argument>(count >= 1, what, ": expected at least 1, got ", count);
}

// init factor(t), at most or at least the target once that is passed.
template <class Factor>
Schedule scaled(double init, std::optional<double> target, const Factor& factor) {
  return [=](std::int64_t t) {
    const double value = init * factor(static_cast<double>(t));
    if (!target) return value;
    return init < *target ? std::min(value, *target) : std::max(value, *target);
  };
}

// Goes from `first` at 0 to `last` from 1 on.
double half_cosine(double first, double last, double part) {
  return last + (first - last) * (1 + std::cos(std::numbers::pi * std::min(part, 1.0))) / 2;
}

}  // namespace

Schedule exponential(double init, double rate, std::optional<double> target) {
  require<std::invalid_argument>(rate >= 0, "ExponentialShift: expected a rate >= 0, got ", rate);
  return scaled(init, target, [=](double t) { return std::pow(rate, t); });
}

Schedule step(double init, double gamma, std::int64_t step, std::optional<double> target) {
  require_count("StepShift: step", step);
  return scaled(init, target, [=](double t) {
    return std::pow(gamma, std::floor(t / static_cast<double>(step)));
  });
}

Schedule multistep(double init, double gamma, std::vector<std::int64_t> steps) {
  return [=, steps = std::move(steps)](std::int64_t t) {
    const auto reached = std::ranges::count_if(steps, [t](std::int64_t step) { return t >= step; });
    return init * std::pow(gamma, static_cast<double>(reached));
  };
}

Schedule polynomial(double init, double rate, std::int64_t max_count,
                    std::optional<double> target) {
  require_count("PolynomialShift: max_count", max_count);
  return scaled(init, target, [=](double t) {
    return std::pow(std::max(1 - t / static_cast<double>(max_count), 0.0), rate);
  });
}

Schedule inverse(double init, double gamma, double power, std::optional<double> target) {
  require<std::invalid_argument>(gamma >= 0, "InverseShift: expected gamma >= 0, got ", gamma);
  return scaled(init, target, [=](double t) { return std::pow(1 + gamma * t, -power); });
}

Schedule linear(std::pair<double, double> values, std::pair<std::int64_t, std::int64_t> times) {
  const auto [first, last] = values;
  const auto [begin, end] = times;
  require<std::invalid_argument>(begin <= end,
                                 "LinearShift: expected a time_range from first to last, got (",
                                 begin, ", ", end, ")");
  return [=, first = first, last = last, begin = begin, end = end](std::int64_t t) {
    if (t <= begin) return first;
    if (t >= end) return last;
    return first +
           (last - first) * static_cast<double>(t - begin) / static_cast<double>(end - begin);
  };
}

Schedule cosine(double init, std::int64_t max_count, double final) {
  require_count("CosineShift: max_count", max_count);
  return [=](std::int64_t t) {
    return half_cosine(init, final, static_cast<double>(t) / static_cast<double>(max_count));
  };
}

Schedule one_cycle(double init, std::int64_t max_count, double warmup) {
  require_count("OneCycleShift: max_count", max_count);
  require<std::invalid_argument>(warmup > 0 && warmup < 1,
                                 "OneCycleShift: expected a warmup between 0 and 1, got ", warmup);
  const double peak = warmup * static_cast<double>(max_count);
  return [=](std::int64_t t) {
    const auto now = static_cast<double>(t);
    if (now < peak) return half_cosine(init / 25, init, now / peak);
    return half_cosine(init, init / 250000, (now - peak) / (static_cast<double>(max_count) - peak));
  };
}

Schedule warmup(double start, std::int64_t updates, Schedule next) {
  return [=, next = std::move(next)](std::int64_t t) {
    if (t >= updates) return next(t);
    return start + (next(updates) - start) * static_cast<double>(t) / static_cast<double>(updates);
  };
}

}  // namespace renga::schedules
