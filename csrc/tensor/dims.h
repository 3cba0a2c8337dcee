// An inline list of extents, strides or axes: arrays have at most 16 axes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <ostream>
#include <span>
#include <stdexcept>

namespace renga {

class Dims {
 public:
  static constexpr int capacity = 16;

  Dims() = default;
  Dims(std::initializer_list<std::int64_t> values)
      : Dims(std::span(values.begin(), values.size())) {}
  explicit Dims(std::span<const std::int64_t> values) {
    for (std::int64_t v : values) push_back(v);
  }
  Dims(const Dims& o) : size_(o.size_) { std::copy_n(o.values_, size_, values_); }
  Dims& operator=(const Dims& o) {
    size_ = o.size_;
    std::copy_n(o.values_, size_, values_);
    return *this;
  }
  static Dims filled(int size, std::int64_t value) {
    Dims d;
    for (int i = 0; i < size; ++i) d.push_back(value);
    return d;
  }

  int size() const { return size_; }
  bool empty() const { return size_ == 0; }
  std::int64_t& operator[](int i) { return values_[i]; }
  std::int64_t operator[](int i) const { return values_[i]; }
  std::int64_t* begin() { return values_; }
  std::int64_t* end() { return values_ + size_; }
  const std::int64_t* begin() const { return values_; }
  const std::int64_t* end() const { return values_ + size_; }
  std::int64_t back() const { return values_[size_ - 1]; }
  std::int64_t product() const {
    std::int64_t p = 1;
    for (std::int64_t v : *this) p *= v;
    return p;
  }
  bool contains(std::int64_t v) const { return std::find(begin(), end(), v) != end(); }

  void push_back(std::int64_t v) {
    if (size_ == capacity) throw std::length_error("array: expected at most 16 axes");
    values_[size_++] = v;
  }
  void pop_back() { --size_; }
  void insert(int at, std::int64_t v) {
    push_back(v);
    std::rotate(values_ + at, values_ + size_ - 1, values_ + size_);
  }
  void erase(int at) {
    std::copy(values_ + at + 1, values_ + size_, values_ + at);
    --size_;
  }

  bool operator==(const Dims& o) const { return std::equal(begin(), end(), o.begin(), o.end()); }

 private:
  int size_ = 0;
  std::int64_t values_[capacity];
};

using Shape = Dims;
using Strides = Dims;  // in bytes
using Axes = Dims;

// "(2, 3)", "(2,)" and "()", as Python prints a tuple.
inline std::ostream& operator<<(std::ostream& out, const Dims& dims) {
  out << '(';
  for (int i = 0; i < dims.size(); ++i) out << (i ? ", " : "") << dims[i];
  return out << (dims.size() == 1 ? ",)" : ")");
}

}  // namespace renga
