#include "python/uploads.h"

#include "devices/uploads.h"
#include "python/variable.h"

namespace renga::python {
namespace {

// Larger arrays would keep too much of the host's memory pinned, and are not batches.
constexpr std::size_t kMost = std::size_t{256} << 20;

Array pinned_empty(const Shape& shape, Dtype dtype, const std::string& name) {
  const Device device = device_from_string(name);
  const auto bytes = static_cast<std::size_t>(shape.product() * size_of(dtype));
  if (bytes == 0 || bytes > kMost) return empty(shape, dtype, Device{});
  const UploadKernels& kernels = upload_kernels.on(device);
  void* block = nullptr;
  kernels.take_pinned(bytes, device.index, &block);
  auto storage = make_ref<Storage>(block, bytes, Device{}, [=] { kernels.give_pinned(block); });
  return Array(std::move(storage), static_cast<std::byte*>(block), shape,
               row_major_strides(shape, size_of(dtype)), dtype);
}

Variable upload(const Array& given, const std::string& name) {
  const Device device = device_from_string(name);
  const Array x = contiguous(given);
  const auto bytes = static_cast<std::size_t>(x.size() * size_of(x.dtype()));
  if (bytes == 0 || bytes > kMost) return Variable(to_device(x, device), false);
  const UploadKernels& kernels = upload_kernels.on(device);
  void* block = nullptr;
  kernels.take(bytes, device.index, &block);
  auto storage = make_ref<Storage>(block, bytes, device, [=] { kernels.give(block); });
  kernels.copy(block, x.data(), bytes, device.index);
  return Variable(Array(std::move(storage), static_cast<std::byte*>(block), x.shape(),
                        row_major_strides(x.shape(), size_of(x.dtype())), x.dtype()),
                  false);
}

void wait_for_upload(const Variable& x) {
  const Storage& storage = *x.array().storage();
  if (!storage.is_borrowed()) return;  // it was copied on the current stream
  upload_kernels.on(storage.device()).wait(storage.data());
}

}  // namespace

void bind_uploads(py::module_& m) {
  m.def("pinned_empty", &pinned_empty, py::arg("shape"), py::arg("dtype"), py::arg("device"),
        "An array of the host whose memory a device reads by itself.");
  m.def(
      "upload", &upload, py::arg("x"), py::arg("device"),
      "A copy of an array of the host on a device, made beside what the device computes. It may be "
      "used after wait_for_upload.");
  m.def("wait_for_upload", &wait_for_upload, py::arg("x"),
        "Has what is computed next on the device wait for the copy; the host does not wait.");
}

}  // namespace renga::python
