#include "ops/shape/sequence.h"

#include <span>

#include "autograd/node.h"
#include "ops/shape/manipulation.h"
#include "tensor/copy.h"
#include "tensor/views.h"

namespace renga {
namespace {

// The elements of all sequences as rows, time step by time step.
struct PackedSequences {
  Array rows;
  std::vector<Array> steps;

  // Appends steps of `samples` rows each: (steps, samples, ...).
  Array append(std::int64_t count, std::int64_t samples) {
    for (std::int64_t t = 0; t < count; ++t) {
      steps.push_back(slice_view(rows, 0, used + t * samples, samples));
    }
    Shape shape = rows.shape();
    shape[0] = samples;
    shape.insert(0, count);
    const Array added = slice_view(rows, 0, used, count * samples);
    used += count * samples;
    return reshape_view(added, shape);
  }

  std::int64_t used = 0;
};

PackedSequences pack(const std::vector<Array>& xs) {
  Shape shape = xs[0].shape();
  for (std::size_t i = 1; i < xs.size(); ++i) shape[0] += xs[i].shape(0);
  PackedSequences to{empty(shape, xs[0].dtype(), xs[0].device()), {}};
  std::int64_t time = 0;
  // Steps with equally many sequences are copied together.
  for (std::size_t samples = xs.size(); samples > 0; --samples) {
    const std::int64_t count = xs[samples - 1].shape(0) - time;
    if (count == 0) continue;
    std::vector<Array> parts;
    for (const Array& x : std::span(xs).first(samples)) {
      parts.push_back(expand_view(slice_view(x, 0, time, count), 1));
    }
    std::vector<const Array*> pointers;
    for (const Array& part : parts) pointers.push_back(&part);
    join(pointers, to.append(count, static_cast<std::int64_t>(samples)), 1);
    time += count;
  }
  return to;
}

void check(const std::vector<Variable>& xs) {
  for (std::size_t i = 0; i < xs.size(); ++i) {
    const Shape &before = xs[i > 0 ? i - 1 : 0].shape("transpose_sequence"),
                &shape = xs[i].shape("transpose_sequence");
    require(!shape.empty() && shape.size() == before.size() && shape[0] <= before[0] &&
                std::equal(shape.begin() + 1, shape.end(), before.begin() + 1),
            "transpose_sequence: expected sequences whose lengths do not increase, got ", before,
            " and ", shape);
  }
}

}  // namespace

std::vector<Variable> transpose_sequence(const std::vector<Variable>& sequences) {
  check(sequences);
  std::vector<Variable> xs;
  std::vector<Array> arrays;
  std::vector<Shape> shapes;
  for (const Variable& x : sequences) {
    xs.push_back(cast(x, sequences[0].dtype()));
    arrays.push_back(xs.back().array());
    shapes.push_back(x.shape());
  }
  if (xs.empty() || shapes[0][0] == 0) return {};
  const PackedSequences y = pack(arrays);
  std::vector<Shape> steps;
  for (const Array& step : y.steps) steps.push_back(step.shape());
  auto back = [shapes, steps, dtype = xs[0].dtype(), device = xs[0].device()](
                  std::span<const Variable> gys, std::span<const int>, Node&) {
    std::vector<Variable> all(gys.begin(), gys.end());
    for (std::size_t t = 0; t < all.size(); ++t) {
      if (!all[t].defined()) all[t] = Variable(zeros(steps[t], dtype, device));
    }
    std::vector<Variable> gxs = transpose_sequence(all);
    for (std::size_t i = gxs.size(); i < shapes.size(); ++i) {
      gxs.emplace_back(zeros(shapes[i], dtype, device));  // empty sequences
    }
    return gxs;
  };
  return record_all("TransposeSequence", y.steps, xs, back);
}

}  // namespace renga
