// The generator of numpy.random: initial values, orders of samples and the seeds of dropouts are
// drawn from it, so that a seed gives the same run in C++ and in Python.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

namespace renga {

// Draws as numpy.random.RandomState does, whose stream of numbers NumPy keeps as it is. It is not
// synchronized.
class NumpyRandom {
 public:
  explicit NumpyRandom(std::uint32_t seed) : engine_(seed) {}

  void seed(std::uint32_t seed) { *this = NumpyRandom(seed); }
  // In [0, 1), of 53 bits.
  double random_sample();
  double uniform(double low, double high);
  double normal(double loc, double scale);
  // The numbers below n in random order.
  std::vector<std::int64_t> permutation(std::int64_t n);
  // For an operation of csrc/ops/random: 53 bits, as functions draw in Python.
  std::uint64_t draw_seed();

 private:
  // At most `largest`, which is above 0.
  std::uint64_t up_to(std::uint64_t largest);

  std::mt19937 engine_;
  double next_normal_ = 0;
  bool has_normal_ = false;
};

// The process's generator, numpy.random. Its first seed is the system's entropy.
NumpyRandom& numpy_random();

}  // namespace renga
