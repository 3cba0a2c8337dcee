// Schedules: a hyperparameter as a function of the number of updates.
//
//   const Schedule rate = schedules::cosine(0.1, 1000);
//   ...
//   optimizer.options.lr = rate(optimizer.t());
//   optimizer.update();
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

namespace renga {

// The value after t updates.
using Schedule = std::function<double(std::int64_t t)>;

// These are the schedules of the extensions in Python whose names end with Shift. They do not pass
// a `target`.
namespace schedules {

// init rateᵗ
Schedule exponential(double init, double rate, std::optional<double> target = {});
// init gammaⁿ, where n counts whole steps, or the given ones that t has reached.
Schedule step(double init, double gamma, std::int64_t step, std::optional<double> target = {});
Schedule multistep(double init, double gamma, std::vector<std::int64_t> steps);
// init (1 - t / max_count)ʳᵃᵗᵉ, and 0 from max_count on.
Schedule polynomial(double init, double rate, std::int64_t max_count,
                    std::optional<double> target = {});
// init / (1 + gamma t)ᵖᵒʷᵉʳ
Schedule inverse(double init, double gamma, double power, std::optional<double> target = {});
// A line between two values and two times, constant before and after.
Schedule linear(std::pair<double, double> values, std::pair<std::int64_t, std::int64_t> times);
// Half a cosine from init to `final`, which is reached at max_count (Loshchilov and Hutter, 2016).
Schedule cosine(double init, std::int64_t max_count, double final = 0);
// Half a cosine from init / 25 to init in the part `warmup` of max_count, then another one to
// init / 250000 (Smith and Topin, 2017).
Schedule one_cycle(double init, std::int64_t max_count, double warmup = 0.3);
// A line from `start` to what `next` is after `updates`, and `next` from there on.
Schedule warmup(double start, std::int64_t updates, Schedule next);

}  // namespace schedules
}  // namespace renga
