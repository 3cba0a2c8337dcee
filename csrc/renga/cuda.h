// Devices of CUDA for C++ programs, which link renga::cuda.
#pragma once

#include "devices/cuda_devices.h"
