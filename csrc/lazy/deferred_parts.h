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
  // The bytes of the largest array of a sample, of this one's and of those that it follows.
  std::int64_t sample_bytes() const;
  // Computes the elements of y, which are those of the deferred array from element `first` on, and
  // calls `pass`, if there is one, for each part of y. What is not a whole array is whole samples.
  // settle() has been called before.
  virtual void compute_parts(const Array& y, std::int64_t first, const PartPass& pass) const = 0;

 protected:
  // What `source` computes is read.
  DeferredParts(const Array& y, const Ref<const DeferredParts>& source, const Array& other,
                std::int64_t unit)
      : Deferred(y, *source, other), unit_(unit), depth_(source->depth_ + 1), source_(source) {}
  void compute(const Array& y) const final;

  // The computation that this one follows, if it computes its parts.
  const DeferredParts* followed() const {
    return source_ && !source_->is_done() ? source_.get() : nullptr;
  }
  const Ref<const DeferredParts>& source() const { return source_; }

 private:
  // Runs the computations that this one follows whose arrays something else can ask for.
  void settle() const;

  const std::int64_t unit_;
  const int depth_ = 0;
  const Ref<const DeferredParts> source_;
};

// A function of single elements, of an array or of what is computed part after part.
class DeferredStep : public DeferredParts {
 public:
  // `other` is an array that transform() reads beside x, or undefined. Parts of x may have any
  // number of units.
  DeferredStep(const Array& y, const Array& x, const Array& other, std::int64_t unit)
      : DeferredParts(y, {x, other}, unit), x_(x) {}
  DeferredStep(const Array& y, const Ref<const DeferredParts>& source, const Array& other)
      : DeferredParts(y, source, other, source->unit()), x_(source->array()) {}

  void compute_parts(const Array& y, std::int64_t first, const PartPass& pass) const final;
  using DeferredParts::source;

 protected:
  // Computes elements of y from those of x, which may be y. Both begin at element `first` of the
  // deferred array.
  virtual void transform(const Array& x, const Array& y, std::int64_t first, std::int64_t begin,
                         std::int64_t end) const = 0;

 private:
  const Array x_;
};

// The computation, if it is one of parts that another one may follow: each holds memory and calls
// the one before it, so that they are few.
Ref<const DeferredParts> pending_parts(const Deferred* deferred);

// The elements from `begin` to before `end`, in the order of memory, of a dense array.
Array elements_of(const Array& x, std::int64_t begin, std::int64_t end);

}  // namespace renga
