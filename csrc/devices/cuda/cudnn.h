// cuDNN: its errors and the descriptors of its graphs.
#pragma once

#include <cudnn.h>

#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

#include "devices/cuda/cuda.h"

namespace renga::cuda {

inline void check(cudnnStatus_t status, const char* call) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  throw std::runtime_error(std::string("cudnn: ") + cudnnGetErrorString(status) + " in " + call);
}

// A descriptor of cuDNN's graph API: attributes are set, then it is finalized.
class Descriptor {
 public:
  explicit Descriptor(cudnnBackendDescriptorType_t type) {
    RENGA_CUDA(cudnnBackendCreateDescriptor(type, &descriptor_));
  }
  ~Descriptor() {
    if (descriptor_ != nullptr) cudnnBackendDestroyDescriptor(descriptor_);
  }
  Descriptor(Descriptor&& other) noexcept
      : descriptor_(std::exchange(other.descriptor_, nullptr)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  cudnnBackendDescriptor_t get() const { return descriptor_; }

  template <class T>
  Descriptor& set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                  std::span<const T> values) {
    RENGA_CUDA(cudnnBackendSetAttribute(descriptor_, name, type,
                                        static_cast<std::int64_t>(values.size()), values.data()));
    return *this;
  }
  template <class T>
  Descriptor& set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                  const T& value) {
    return set(name, type, std::span<const T>(&value, 1));
  }
  Descriptor& set(cudnnBackendAttributeName_t name, std::span<const std::int64_t> values) {
    return set(name, CUDNN_TYPE_INT64, values);
  }
  Descriptor& set(cudnnBackendAttributeName_t name, const Descriptor& other) {
    return set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, other.descriptor_);
  }
  // Reads at most values.size() values; returns how many there are.
  template <class T>
  std::int64_t read(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                    std::span<T> values) const {
    std::int64_t count = 0;
    RENGA_CUDA(cudnnBackendGetAttribute(
        descriptor_, name, type, static_cast<std::int64_t>(values.size()), &count, values.data()));
    return count;
  }

  void finalize() { RENGA_CUDA(cudnnBackendFinalize(descriptor_)); }
  // False where cuDNN does not support what was set.
  bool try_finalize() { return cudnnBackendFinalize(descriptor_) == CUDNN_STATUS_SUCCESS; }

 private:
  cudnnBackendDescriptor_t descriptor_ = nullptr;
};

}  // namespace renga::cuda
