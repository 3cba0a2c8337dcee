// The host's memory: what every other device copies from and to.
#pragma once

#include "devices/device.h"

namespace renga {

Driver& host_driver();

}  // namespace renga
