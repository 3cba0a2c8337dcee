#include "optimizers/prediction.h"

#include "tensor/overlap.h"

namespace renga {

constinit KernelTable<PredictionKernels> prediction_kernels{"predictions"};

namespace {

// Calls visit(array) for each array that the step is made from.
template <class Visit>
void for_each_state(const Prediction& prediction, const Visit& visit) {
  if (const auto* scaled = std::get_if<ScaledStep>(&prediction.step)) visit(scaled->d);
  if (const auto* adam = std::get_if<AdamMoments>(&prediction.step)) {
    visit(adam->m);
    visit(adam->v);
  }
}

void require_like(const char* what, const Array& x, const Array& y) {
  require(y.shape() == x.shape() && y.dtype() == x.dtype() && y.device() == x.device(),
          "predict: expected ", what, ", ", x.shape(), " of ", x.dtype(), " on ",
          to_string(x.device()), ", got ", y.shape(), " of ", y.dtype(), " on ",
          to_string(y.device()));
}

void check(const Prediction& prediction, Device device) {
  const Array &x = prediction.x, &master = prediction.master;
  require(is_float(x.dtype()), "predict: expected a float parameter, got ", x.dtype());
  require<std::invalid_argument>(x.device() == device,
                                 "predict: expected parameters on one device, got ",
                                 to_string(device), " and ", to_string(x.device()));
  require_like("a result like the parameter", x, prediction.y);
  if (master.defined()) {
    require(x.dtype() == Dtype::float16 && master.dtype() == Dtype::float32 &&
                master.shape() == x.shape() && master.device() == device,
            "predict: expected float32 values of a float16 parameter, ", x.shape(), ", got ",
            master.shape(), " of ", master.dtype(), " for ", x.dtype());
  }
  for_each_state(prediction, [&](const Array& state) {
    require_like("states like the values", prediction.values(), state);
  });
}

void check_overlap(const std::vector<Prediction>& predictions) {
  std::vector<Array> results;
  results.reserve(predictions.size());
  for (const Prediction& prediction : predictions) results.push_back(prediction.y);
  const MemoryRanges written(results);
  bool overlap = written.overlap();
  const auto check = [&](const Array& x) { overlap = overlap || written.overlap(x); };
  for (const Prediction& prediction : predictions) {
    check(prediction.x);
    check(prediction.master);
    for_each_state(prediction, check);
  }
  require<std::invalid_argument>(!overlap,
                                 "predict: expected results whose memory does not overlap that of "
                                 "parameters, their states or other results");
}

}  // namespace

void predict(const std::vector<Prediction>& predictions, double steps) {
  require<std::invalid_argument>(steps >= 0, "predict: expected steps >= 0, got ", steps);
  if (predictions.empty()) return;
  const Device device = predictions[0].x.device();
  for (const Prediction& prediction : predictions) check(prediction, device);
  check_overlap(predictions);
  prediction_kernels.on(device).predict(predictions, steps);
}

}  // namespace renga
