// Deferred arrays that are computed part after part, so that what follows an operation is done to
// each part while it is in the cache: a convolution, its normalization and its activation read and
// write memory once.
#pragma once

#include <cstdint>
#include <functional>

#include "lazy/deferred.h"

namespace renga {

// What is done to the elements of a dense array from `begin` to before `end`, in the order of
// memory, when they have been computed. It may be called on several threads at once.
using PartPass = std::function<void(std::int64_t begin, std::int64_t end)>;

class DeferredParts : public Deferred {
 public:
  // Parts begin and end at multiples of `unit` elements.
  DeferredParts(const Array& y, std::initializer_list<Array> inputs, std::int64_t unit)
      : Deferred(y, inputs), unit_(unit) {}

  std::int64_t unit() const { return unit_; }
  // How many computations this one follows.
  int depth() const { return depth_; }
  // Computes the elements of y, which is as the deferred array is, and calls `pass`, if there is
  // one, for each part.
  virtual void compute_parts(const Array& y, const PartPass& pass) const = 0;

 protected:
  DeferredParts(const Array& y, const DeferredParts& source, const Array& other)
      : Deferred(y, source, other), unit_(source.unit_), depth_(source.depth_ + 1) {}
  void compute(const Array& y) const final { compute_parts(y, {}); }

 private:
  const std::int64_t unit_;
  const int depth_ = 0;
};

// A function of single elements, of an array or of what is computed part after part.
class DeferredStep : public DeferredParts {
 public:
  // `other` is an array that transform() reads beside x, or undefined. Parts of x may have any
  // number of units.
  DeferredStep(const Array& y, const Array& x, const Array& other, std::int64_t unit)
      : DeferredParts(y, {x, other}, unit), x_(x) {}
  DeferredStep(const Array& y, Ref<const DeferredParts> source, const Array& other)
      : DeferredParts(y, *source, other), x_(source->array()), source_(std::move(source)) {}

  void compute_parts(const Array& y, const PartPass& pass) const final;
  const Ref<const DeferredParts>& source() const { return source_; }

 protected:
  // Computes elements of y from those of x, which may be y.
  virtual void transform(const Array& x, const Array& y, std::int64_t begin,
                         std::int64_t end) const = 0;

 private:
  const Array x_;
  const Ref<const DeferredParts> source_;  // computes x
};

// The computation, if it is one of parts that another one may follow: each holds memory and calls
// the one before it, so that they are few.
Ref<const DeferredParts> pending_parts(const Deferred* deferred);

// The elements from `begin` to before `end`, in the order of memory, of a dense array.
Array elements_of(const Array& x, std::int64_t begin, std::int64_t end);

}  // namespace renga
