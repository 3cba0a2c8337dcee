// Batches of samples in random order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "autograd/variable.h"

namespace renga {

// An epoch: pairs of samples and labels, in an order that is drawn from numpy_random(). What is
// left of the last batch is left out.
//
//   for (auto [x, t] : Batches(images, labels, 64)) ...
class Batches {
 public:
  // Each of `ranks` processes gets its part of each batch; all have the same samples and seed.
  Batches(Array xs, Array ts, std::int64_t size, int rank = 0, int ranks = 1);

  class Iterator {
   public:
    Iterator(const Batches& batches, std::size_t index) : batches_(batches), index_(index) {}
    std::pair<Variable, Array> operator*() const { return batches_[index_]; }
    Iterator& operator++() {
      ++index_;
      return *this;
    }
    bool operator==(const Iterator& other) const { return index_ == other.index_; }

   private:
    const Batches& batches_;
    std::size_t index_;
  };
  Iterator begin() const { return {*this, 0}; }
  Iterator end() const { return {*this, count()}; }
  std::size_t count() const { return order_.size() / size_; }
  // This rank's part of a batch.
  std::pair<Variable, Array> operator[](std::size_t index) const;

 private:
  Array xs_, ts_;
  std::size_t size_, rank_, ranks_;
  std::vector<std::int64_t> order_;
};

}  // namespace renga
