#include "mirror_device/mirror_device.h"

#include <cstdlib>
#include <cstring>

#include "ops/normalization/channel_vectors.h"
#include "ops/ops.h"
#include "optimizers/update_rules.h"
#include "tensor/copy.h"

namespace renga {

namespace {

class MirrorDriver final : public Driver {
 public:
  explicit MirrorDriver(const char* name) : name_(name) {}
  std::string name() const override { return name_; }
  int count() const override { return 2; }
  void* reserve(std::size_t bytes, int) override {
    return std::aligned_alloc(64, (bytes + 63) / 64 * 64);
  }
  void release(void* block, std::size_t, int) override { std::free(block); }
  void copy_from_host(void* to, const void* from, std::size_t bytes, int) override {
    std::memcpy(to, from, bytes);
  }
  void copy_to_host(void* to, const void* from, std::size_t bytes, int) override {
    std::memcpy(to, from, bytes);
  }
  void copy_within(void* to, const void* from, std::size_t bytes, int) override {
    std::memmove(to, from, bytes);
  }
  void synchronize(int) override {}

 private:
  const char* name_;
};

template <class... Kernels>
std::uint8_t add_device(const char* name, KernelTable<Kernels>&... tables) {
  // Never destroyed: Python may hold arrays of this device until the process ends.
  static MirrorDriver* const driver = new MirrorDriver(name);
  const std::uint8_t number = register_driver(driver);
  (tables.add(number, tables.on(Device{})), ...);
  return number;
}

}  // namespace

Device mirror_device() {
  static const std::uint8_t number =
      add_device("mirror", copy_kernels, elementwise_kernels, reduction_kernels, scan_kernels,
                 softmax_kernels, matmul_kernels, convolution_kernels, pooling_kernels,
                 sampling_kernels, normalization_kernels, channel_vector_kernels, recurrent_kernels,
                 random_kernels, loss_kernels, path_kernels, indexing_kernels, attention_kernels,
                 row_normalization_kernels, linalg_kernels, fourier_kernels, update_kernels);
  return {number, 1};
}

Device bare_device() {
  static const std::uint8_t number = add_device("bare", copy_kernels);
  return {number, 0};
}

}  // namespace renga
