// All families of operations.
#pragma once

#include "ops/activation.h"
#include "ops/arithmetic.h"
#include "ops/convolution.h"
#include "ops/convolution_parts.h"
#include "ops/indexing.h"
#include "ops/loss.h"
#include "ops/manipulation.h"
#include "ops/math.h"
#include "ops/matmul.h"
#include "ops/noise.h"
#include "ops/normalization.h"
#include "ops/pooling.h"
#include "ops/recurrent.h"
#include "ops/reduction.h"
#include "ops/sequence.h"
#include "ops/softmax.h"

namespace renga {

template <class Visit>
void list_ops(Visit&& visit) {
  list_arithmetic_ops(visit);
  list_math_ops(visit);
  list_activation_ops(visit);
  list_reduction_ops(visit);
  list_matmul_ops(visit);
  list_convolution_ops(visit);
  list_convolution_parts_ops(visit);
  list_pooling_ops(visit);
  list_normalization_ops(visit);
  list_manipulation_ops(visit);
  list_indexing_ops(visit);
  list_softmax_ops(visit);
  list_loss_ops(visit);
  list_noise_ops(visit);
  list_recurrent_ops(visit);
  list_sequence_ops(visit);
}

}  // namespace renga
