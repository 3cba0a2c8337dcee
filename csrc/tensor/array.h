// Array: a strided view of typed elements in a shared block of memory.
#pragma once

#include <cstdint>
#include <optional>

#include "devices/device.h"
#include "tensor/dims.h"
#include "tensor/dtype.h"
#include "tensor/error.h"
#include "tensor/storage.h"

namespace renga {

// Copies of an Array share its memory, as NumPy's views do. A default-made one is "undefined".
class Array {
 public:
  Array() = default;
  Array(Ref<Storage> storage, std::byte* data, const Shape& shape, const Strides& strides,
        Dtype dtype)
      : storage_(std::move(storage)),
        data_(data),
        shape_(shape),
        strides_(strides),
        dtype_(dtype) {}

  bool defined() const { return static_cast<bool>(storage_); }
  const Shape& shape() const { return shape_; }
  std::int64_t shape(int axis) const { return shape_[axis]; }
  const Strides& strides() const { return strides_; }
  int ndim() const { return shape_.size(); }
  std::int64_t size() const { return shape_.product(); }
  Dtype dtype() const { return dtype_; }
  std::int64_t itemsize() const { return size_of(dtype_); }
  // Throws std::invalid_argument, with the name of the calling function, if it is undefined.
  Device device(const char* caller = __builtin_FUNCTION()) const {
    if (!defined()) [[unlikely]]
      fail_as_undefined("an Array", caller);
    return storage_->device();
  }
  const Ref<Storage>& storage() const { return storage_; }

  // The first element; the others lie at `strides` from it.
  std::byte* data() const { return data_; }
  template <class T>
  T* as() const {
    return reinterpret_cast<T*>(data_);
  }
  // Row-major without gaps.
  bool is_contiguous() const;

 private:
  Ref<Storage> storage_;
  std::byte* data_ = nullptr;
  Shape shape_;
  Strides strides_;
  Dtype dtype_ = Dtype::float32;
};

// An argument that the callee writes to: never a copy of what the caller handed in.
struct OutputArray {
  Array array;
};

// Fresh memory, not initialised, in row-major order.
Array empty(const Shape& shape, Dtype dtype, Device device = {});
// Makes an array like `x` in shape and device, with its axes in the same order of memory (a
// channels-last image stays so).
Array empty_like(const Array& x, std::optional<Dtype> dtype = {});
// Fresh memory of `shape` whose axes lie in memory in the given order, outermost first.
Array empty_in_order(const Shape& shape, const Axes& order, Dtype dtype, Device device = {});
Array full(const Shape& shape, double value, Dtype dtype, Device device = {});
Array zeros(const Shape& shape, Dtype dtype, Device device = {});

Strides row_major_strides(const Shape& shape, std::int64_t itemsize);
// The axes from the outermost in memory to the innermost; ties and broadcast axes keep their order.
Axes memory_order(const Array& x);

// Moves elements, with a change of strides, dtype or device where they differ. Same shape.
void copy(const Array& from, const Array& to);
void fill(const Array& x, double value);
// `x` itself where it already is so, a copy otherwise.
Array contiguous(const Array& x);
Array cast(const Array& x, Dtype dtype);
Array to_device(const Array& x, Device device);
Array copy_of(const Array& x);

// The single element of an array on any device.
double item(const Array& x);

}  // namespace renga
