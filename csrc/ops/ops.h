// All families of operations.
#pragma once

#include "ops/attention/attention.h"
#include "ops/convolution/block_convolution.h"
#include "ops/convolution/convolution.h"
#include "ops/elementwise/activation.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/elementwise/math.h"
#include "ops/indexing/indexing.h"
#include "ops/linalg/fft.h"
#include "ops/linalg/linalg.h"
#include "ops/loss/loss.h"
#include "ops/loss/paths.h"
#include "ops/matmul/matmul.h"
#include "ops/normalization/layer.h"
#include "ops/normalization/normalization.h"
#include "ops/pooling/pooling.h"
#include "ops/random/random.h"
#include "ops/recurrent/recurrent.h"
#include "ops/reduction/reduction.h"
#include "ops/reduction/scan.h"
#include "ops/reduction/softmax.h"
#include "ops/sampling/sampling.h"
#include "ops/shape/manipulation.h"
#include "ops/shape/sequence.h"

namespace renga {

template <class Visit>
void list_ops(Visit&& visit) {
  list_arithmetic_ops(visit);
  list_math_ops(visit);
  list_activation_ops(visit);
  list_reduction_ops(visit);
  list_scan_ops(visit);
  list_matmul_ops(visit);
  list_linalg_ops(visit);
  list_fourier_ops(visit);
  list_convolution_ops(visit);
  list_block_convolution_ops(visit);
  list_pooling_ops(visit);
  list_sampling_ops(visit);
  list_normalization_ops(visit);
  list_row_normalization_ops(visit);
  list_manipulation_ops(visit);
  list_indexing_ops(visit);
  list_softmax_ops(visit);
  list_loss_ops(visit);
  list_path_ops(visit);
  list_random_ops(visit);
  list_attention_ops(visit);
  list_recurrent_ops(visit);
  list_sequence_ops(visit);
}

}  // namespace renga
