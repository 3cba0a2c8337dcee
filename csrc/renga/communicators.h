// Ranks of C++ programs, which link renga::communicators.
#pragma once

#include "channel/channel_parallel.h"
#include "data_parallel/data_parallel.h"
#include "spatial/halo_exchange.h"
#include "world.h"
