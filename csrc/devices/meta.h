// The device without memory (kMeta).
#pragma once

#include "devices/device.h"

namespace renga {

Driver& meta_driver();

}  // namespace renga
