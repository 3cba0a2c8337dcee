// Which algorithm has been selected for which problem. The selections can be shown, saved and
// loaded (renga.kernels).
#pragma once

#include <functional>
#include <map>
#include <string>

namespace renga {

// Names of algorithms by problem: an operation's pass with its shapes and options, in words.
using AlgorithmCache = std::map<std::string, std::string>;

// The algorithm loaded or selected before for `problem`; otherwise what `select` returns, which is
// cached and passed to the observer.
std::string cached_algorithm(const std::string& problem,
                             const std::function<const char*()>& select);

AlgorithmCache algorithm_cache();
// Loaded algorithms take precedence over the operations' own selection.
void load_algorithms(const AlgorithmCache& loaded);
void clear_algorithms();

// Called for every new selection, on the thread of the operation.
extern void (*algorithm_observer)(const std::string& problem, const std::string& algorithm);

}  // namespace renga
