#include "devices/uploads.h"

namespace renga {

constinit KernelTable<UploadKernels> upload_kernels{"uploads"};

}  // namespace renga
