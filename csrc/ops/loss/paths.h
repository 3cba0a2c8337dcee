// Paths through the steps of sequences: their alignments to labels, and the best ones.
#pragma once

#include <vector>

#include "devices/kernel_table.h"
#include "ops/list.h"

namespace renga {

// Alignments of label paths (N, S), blanks between labels, to (T, N, K) log probabilities, all
// dense and the latter float64 or float32. `lengths` are the steps of each sample and the positions
// of its path; positions and lengths are int64.
struct Alignment {
  Array scores, path, lengths, path_lengths;
  std::int64_t blank;
};

struct PathKernels {
  // alpha (N, T, S): the log probability of all beginnings that end at a step at a position; the
  // loss (N,) is minus that of all alignments.
  void (*align)(const Alignment& x, const Array& alpha, const Array& loss);
  // Adds to gx (T, N, K) of the scores, for the gradient gy (N,) of the loss.
  void (*align_grad)(const Alignment& x, const Array& alpha, const Array& gy, const Array& gx);
  // The path through the steps (B_t, K), each a prefix of the sequences of the step before, with
  // the largest sum of scores and of cost (K, K) from each label to the next: int32 labels (B_t,).
  void (*best_paths)(const Array& cost, const std::vector<Array>& xs,
                     const std::vector<Array>& labels);
};
extern KernelTable<PathKernels> path_kernels;

// Minus the log probability of all alignments of each sample.
Variable alignment_loss(const Variable& scores, const Array& path, const Array& lengths,
                        const Array& path_lengths, std::int64_t blank);
// The labels of each step on the best path of each sequence.
std::vector<Variable> best_paths(const Variable& cost, const std::vector<Variable>& xs);

template <class Visit>
void list_path_ops(Visit&& visit) {
  visit(Op{"alignment_loss", "(T, N, K), (N, S), (N,), (N,) -> (N,)",
           "Minus the log probability of all alignments of label paths to steps."},
        &alignment_loss, Arg{"scores"}, Arg{"path"}, Arg{"lengths"}, Arg{"path_lengths"},
        Arg{"blank"});
  visit(Op{"best_paths", "(K, K), [(B, K), ...] -> [(B,), ...]",
           "The labels of the highest sums of scores and transitions."},
        &best_paths, Arg{"cost"}, Arg{"xs"});
}

}  // namespace renga
