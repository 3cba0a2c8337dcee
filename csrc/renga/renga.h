// All that a C++ program needs of renga: arrays, variables, operations, backward passes, modules,
// optimizers, files. Communicators are in <renga/communicators.h>.
#pragma once

#include "autograd/backward.h"
#include "nn/batches.h"
#include "nn/layers.h"
#include "nn/named_arrays.h"
#include "nn/numpy_random.h"
#include "nn/optimizers.h"
#include "nn/recurrent.h"
#include "nn/schedules.h"
#include "ops/ops.h"
#include "settings/settings.h"
#include "tensor/views.h"
