#include "tensor/storage.h"

#include <utility>

#include "devices/allocator.h"

namespace renga {

Storage::Storage(std::size_t bytes, Device device)
    : data_(static_cast<std::byte*>(allocate(bytes, device))), bytes_(bytes), device_(device) {}

Storage::Storage(void* data, std::size_t bytes, Device device, std::function<void()> forget)
    : data_(static_cast<std::byte*>(data)),
      bytes_(bytes),
      device_(device),
      forget_(std::move(forget)),
      is_borrowed_(true) {}

Storage::Storage(const Ref<Storage>& owner)
    : data_(owner->data()), bytes_(owner->bytes()), device_(owner->device()), forget_([owner] {}) {}

Storage::~Storage() {
  if (forget_) {
    forget_();
  } else {
    deallocate(data_, bytes_, device_);
  }
}

}  // namespace renga
