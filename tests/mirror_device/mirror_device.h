// Devices whose memory is the host's: what holds for them holds for any device with such kernels.
#pragma once

#include "devices/device.h"

namespace renga {

// The second of two devices, with all kernels of the host.
Device mirror_device();
// A device that has kernels for copies only.
Device bare_device();

}  // namespace renga
