#include "ops/convolution/cpu/selection.h"

#include <algorithm>
#include <array>
#include <mutex>
#include <sstream>
#include <unordered_map>
#include <vector>

#include "devices/forked_processes.h"
#include "devices/numbers_hash.h"
#include "ops/convolution/cpu/tiles/tile_convolution.h"
#include "ops/matmul/cpu/selection.h"
#include "ops/matmul/precision.h"

namespace renga {

void (*algorithm_observer)(const std::string& problem, const std::string& algorithm) = nullptr;

namespace convolution {
namespace {

#define RENGA_ADDRESS(name) &name,
constexpr std::array kAlgorithms{RENGA_CONVOLUTION_ALGORITHMS(RENGA_ADDRESS)};
#undef RENGA_ADDRESS

const Algorithm* cheapest(const Problem& problem) {
  const Algorithm* best = nullptr;
  double least = 0;
  for (const Algorithm* algorithm : kAlgorithms) {
    if (!algorithm->supports(problem)) continue;
    const double cost = algorithm->cost(problem);
    if (best == nullptr || cost < least) best = algorithm, least = cost;
  }
  return best;
}

const Algorithm* find_algorithm(const std::string& name) {
  for (const Algorithm* algorithm : kAlgorithms) {
    if (name == algorithm->name) return algorithm;
  }
  return nullptr;
}

// The view of so many images; those that there are not are not read.
Array of_samples(const Array& images, std::int64_t count) {
  Shape shape = images.shape();
  shape[0] = count;
  return {images.storage(), images.data(), shape, images.strides(), images.dtype()};
}

std::string in_words(const Problem& problem) {
  constexpr std::array passes{"forward", "input gradient", "weight gradient"};
  constexpr std::array products{"float32", "bf16x3", "bfloat16", "bfloat16"};
  const auto& [stride, pad, dilate, groups] = problem.window;
  std::ostringstream text;
  text << "convolution " << passes[static_cast<std::size_t>(problem.pass)] << ", x "
       << problem.x.shape() << ", W " << problem.W.shape() << ", y " << problem.y.shape()
       << ", stride " << stride << ", pad " << pad;
  if (dilate != Dims::filled(dilate.size(), 1)) text << ", dilate " << dilate;
  if (groups > 1) text << ", groups " << groups;
  text << ", products of "
       << (problem.x.dtype() == Dtype::float64
               ? "float64"
               : products[static_cast<std::size_t>(problem.arithmetic)]);
  return text.str();
}

// A program with ever new shapes must not fill the memory: a full table of what was selected is
// emptied. What was loaded stays.
constexpr std::size_t kMostSelected = 4096;

ForkMutex mutex;

struct Selections {
  AlgorithmCache loaded, selected;
  const Algorithm* wanted = nullptr;  // for all problems that it supports
  // This table has what follows from the members above, for problems that have been met.
  std::unordered_map<std::vector<std::int64_t>, const Algorithm*, NumbersHash> by_key;
};
// This object is never destroyed: threads may still run operations while the process exits.
Selections& selections() {
  static auto* const all = new Selections;
  return *all;
}

}  // namespace

Arithmetic arithmetic_of(const Problem& problem) {
  const Dtype dtype = problem.x.dtype();
  const Precision precision = compute_precision();
  if (dtype == Dtype::float32 && precision == Precision::high && bf16x3_is_faster()) {
    return Arithmetic::bf16x3;
  }
  if (dtype != Dtype::bfloat16 && precision != Precision::medium) return Arithmetic::float32;
  if (tiles_support(problem)) {
    return bfloat16_is_faster() ? Arithmetic::tiles : Arithmetic::float32;
  }
  return dot_products_are_faster() ? Arithmetic::bfloat16 : Arithmetic::float32;
}

const Algorithm* select(const Problem& problem) {
  if (problem.of_samples > 0) {
    const Array x = of_samples(problem.x, problem.of_samples);
    const Array y = of_samples(problem.y, problem.of_samples);
    return select(
        {problem.pass, x, problem.W, y, problem.window, problem.cache, problem.arithmetic});
  }
  const auto key = problem.key();
  std::unique_lock lock(mutex);
  auto& [loaded, selected, wanted, by_key] = selections();
  if (const auto met = by_key.find(key); met != by_key.end()) return met->second;
  if (std::max(by_key.size(), selected.size()) >= kMostSelected) by_key.clear(), selected.clear();
  const Algorithm*& algorithm = by_key[key];
  if (wanted != nullptr && wanted->supports(problem)) return algorithm = wanted;
  const Algorithm* const best = algorithm = cheapest(problem);
  if (best == nullptr) return nullptr;
  const std::string text = in_words(problem);
  if (const auto given = loaded.find(text); given != loaded.end()) {
    const Algorithm* const named = find_algorithm(given->second);
    return named != nullptr && named->supports(problem) ? algorithm = named : best;
  }
  const bool is_new = selected.emplace(text, best->name).second;
  lock.unlock();
  if (is_new && algorithm_observer != nullptr) algorithm_observer(text, best->name);
  return best;
}

}  // namespace convolution

using convolution::mutex, convolution::selections;

AlgorithmCache algorithm_cache() {
  const std::lock_guard lock(mutex);
  AlgorithmCache all = selections().loaded;
  all.insert(selections().selected.begin(), selections().selected.end());
  return all;
}

void load_algorithms(const AlgorithmCache& loaded) {
  const std::lock_guard lock(mutex);
  for (const auto& [problem, algorithm] : loaded) selections().loaded[problem] = algorithm;
  selections().by_key.clear();
}

void clear_algorithms() {
  const std::lock_guard lock(mutex);
  selections().loaded.clear();
  selections().selected.clear();
  selections().by_key.clear();
}

void use_convolution_algorithm(const std::string& name) {
  const auto* const wanted = convolution::find_algorithm(name);
  std::string names = "auto";
  for (const auto* algorithm : convolution::kAlgorithms)
    names += ", " + std::string(algorithm->name);
  require<std::invalid_argument>(wanted != nullptr || name == "auto",
                                 "use_convolution_kernel: expected one of ", names, ", got ", name);
  const std::lock_guard lock(mutex);
  selections().wanted = wanted;
  selections().by_key.clear();
}

}  // namespace renga
