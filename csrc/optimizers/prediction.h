// Prediction: the values that parameters will have after further updates, for pipelines whose
// forward passes are several updates ahead of their backward passes.
#pragma once

#include <array>
#include <span>
#include <variant>
#include <vector>

#include "devices/kernel_table.h"
#include "tensor/array.h"

namespace renga {

// x += scale d
struct ScaledStep {
  Array d;
  double scale;
};

// The step of the rule adam, by its options, from these moments; of AMSGrad, v is the maximum of
// the second moments.
struct AdamMoments {
  Array m;
  Array v;
  std::array<double, 8> options;
};

// A prediction of x in y, from the step that x's rule makes with its present state.
struct Prediction {
  Array y;
  Array x;
  Array master;  // the float32 values of a float16 parameter, which are updated instead of x
  std::variant<std::monostate, ScaledStep, AdamMoments> step;  // without a step, y = x

  const Array& values() const { return master.defined() ? master : x; }
};

struct PredictionKernels {
  void (*predict)(std::span<const Prediction> predictions, double steps);
};
extern KernelTable<PredictionKernels> prediction_kernels;

// y = x + steps · step(x) for all predictions, in one pass. Each y is like its x, and shares no
// memory with another array. Other arrays of a prediction are like its x, or like its master.
//
// Source: PipeOptim, arXiv 2312.00839; with momentum also SpecTrain, arXiv 1809.02839.
void predict(const std::vector<Prediction>& predictions, double steps);

}  // namespace renga
