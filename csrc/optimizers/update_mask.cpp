#include "optimizers/update_mask.h"

namespace renga {

UpdateMask& update_mask() {
  thread_local UpdateMask mask;
  return mask;
}

}  // namespace renga
