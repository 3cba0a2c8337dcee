#include "ops/loss/loss.h"

#include "devices/gil_release.h"
#include "ops/reduction/cpu/softmax_columns.h"
#include "ops/reduction/cpu/softmax_row.h"

namespace renga {
namespace {

// The class of a sample and its weight; class 0 with weight 0 if it is ignored.
template <class T>
struct Labels {
  std::int64_t classes, ignore;
  const LossOf<T>* weight;  // or nullptr

  std::int64_t label(const std::byte* t) const {
    const auto label = *reinterpret_cast<const std::int64_t*>(t);
    return label == ignore ? 0 : label;
  }
  Compute<T> weight_of(const std::byte* t) const {
    const auto label = *reinterpret_cast<const std::int64_t*>(t);
    if (label == ignore) return 0;
    return weight != nullptr ? static_cast<Compute<T>>(weight[label]) : Compute<T>(1);
  }
};

template <class T>
Labels<T> labels_of(const Array& x, const Array& weight, std::int64_t ignore) {
  return {x.shape(1), ignore, weight.defined() ? weight.as<const LossOf<T>>() : nullptr};
}

// Scores of some samples, one after the other: of a row, or of columns.
template <class C>
struct Samples {
  const C* scores;
  std::int64_t step;
  const C* tops;
  const C* shifts;
  // x - top - shift of a class of a sample, as the row and the columns compute it.
  C log_softmax(std::int64_t label, std::int64_t sample) const {
    return (scores[label * step + sample] - tops[sample]) - shifts[sample];
  }
};

template <class T>
void nll(const Array& x, const Array& t, const Labels<T>& labels, const Array& normalizers,
         const Array& loss) {
  using C = Compute<T>;
  using Loss = LossOf<T>;
  const std::int64_t n = labels.classes;
  // With no classes, all samples are ignored.
  if (n == 0) return fill(loss, 0);
  const Array xs = select_view(x, 1, 0), tops = select_view(normalizers, 0, 0);
  const Array shifts = select_view(normalizers, 0, 1);
  const auto loop = make_loop<5>({&loss, &t, &xs, &tops, &shifts});
  const bool by_columns = suits_columns<T>(x, 1);
  parallel_walk(loop, 10 * n, [&](std::int64_t m, const auto& p, const auto& s) {
    const auto store = [&](std::int64_t first, std::int64_t count, const Samples<C>& samples) {
      for (std::int64_t k = 0; k < count; ++k) {
        const std::int64_t j = first + k;
        const std::byte* const label = p[1] + j * s[1];
        const C w = labels.weight_of(label);
        *reinterpret_cast<C*>(p[3] + j * s[3]) = samples.tops[k];
        *reinterpret_cast<C*>(p[4] + j * s[4]) = samples.shifts[k];
        const C rounded = static_cast<C>(Loss(samples.log_softmax(labels.label(label), k)));
        *reinterpret_cast<Loss*>(p[0] + j * s[0]) = Loss(w == 0 ? C(0) : -w * rounded);
      }
    };
    if (by_columns) {
      ColumnBuffer<T> scores(x.strides()[1], s[2], n);
      return for_column_blocks(m, [&](std::int64_t j, std::int64_t count) {
        const Columns<const C> columns = scores.read(p[2] + j * s[2], count);
        const ColumnNormalizers<C> all = column_normalizers(columns, n);
        store(j, count, {columns.data, columns.step, all.tops, all.shifts});
      });
    }
    RowBuffer<T> scores(x.strides()[1], n);
    for (std::int64_t j = 0; j < m; ++j) {
      const C* const row = scores.read(p[2] + j * s[2]);
      const SoftmaxNormalizer<C> normalizer = softmax_normalizer(row, n);
      store(j, 1, {row, 1, &normalizer.top, &normalizer.shift});
    }
  });
}

template <class T>
void nll_grad(const Array& x, const Array& normalizers, const Array& t, const Labels<T>& labels,
              const Array& gy, const Array& gx) {
  using C = Compute<T>;
  using Loss = LossOf<T>;
  const std::int64_t n = labels.classes;
  if (n == 0) return;
  const Array from = select_view(x, 1, 0), rows = select_view(gx, 1, 0);
  const Array tops = select_view(normalizers, 0, 0), shifts = select_view(normalizers, 0, 1);
  const auto loop = make_loop<6>({&rows, &t, &from, &gy, &tops, &shifts});
  const bool by_columns = suits_columns<T>(x, 1);
  parallel_walk(loop, 10 * n, [&](std::int64_t m, const auto& p, const auto& s) {
    const auto number = [&]<class Number>(Type<Number>, int k, std::int64_t j) {
      return static_cast<C>(*reinterpret_cast<const Number*>(p[k] + j * s[k]));
    };
    const auto factor_of = [&](std::int64_t j) {
      const C w = labels.weight_of(p[1] + j * s[1]);
      return static_cast<C>(Loss(w == 0 ? C(0) : w * number(Type<Loss>{}, 3, j)));
    };
    const auto of_label = [&](const Samples<C>& samples, std::int64_t label, std::int64_t k,
                              C factor) {
      return (std::exp(samples.log_softmax(label, k)) - 1) * factor;
    };
    if (by_columns) {
      ColumnBuffer<T> scores(x.strides()[1], s[2], n), gradients(gx.strides()[1], s[0], n);
      return for_column_blocks(m, [&](std::int64_t j, std::int64_t count) {
        ColumnNormalizers<C> all{};
        C factors[kColumns] = {};
        for (std::int64_t k = 0; k < count; ++k) {
          all.tops[k] = number(Type<C>{}, 4, j + k);
          all.shifts[k] = number(Type<C>{}, 5, j + k);
          factors[k] = factor_of(j + k);
        }
        const Columns<const C> columns = scores.read(p[2] + j * s[2], count);
        const Columns<C> to = gradients.at(p[0] + j * s[0], count);
        column_exponentials(columns, n, all, factors, to);
        const Samples<C> samples{columns.data, columns.step, all.tops, all.shifts};
        for (std::int64_t k = 0; k < count; ++k) {
          const std::int64_t label = labels.label(p[1] + (j + k) * s[1]);
          to.row(label)[k] = of_label(samples, label, k, factors[k]);
        }
        gradients.write(p[0] + j * s[0], count);
      });
    }
    RowBuffer<T> scores(x.strides()[1], n), gradients(gx.strides()[1], n);
    for (std::int64_t j = 0; j < m; ++j) {
      const std::int64_t label = labels.label(p[1] + j * s[1]);
      const C factor = factor_of(j);
      const C top = number(Type<C>{}, 4, j), shift = number(Type<C>{}, 5, j);
      const C* const row = scores.read(p[2] + j * s[2]);
      C* const to = gradients.at(p[0] + j * s[0]);
      softmax_rows::exponentials(row, n, top, shift, factor, to);
      to[label] = of_label({row, 1, &top, &shift}, label, 0, factor);
      gradients.write(p[0] + j * s[0]);
    }
  });
}

void nll_cpu(const Array& x, const Array& t, const Array& weight, std::int64_t ignore,
             const Array& normalizers, const Array& loss) {
  const GilRelease work(x.size());
  visit_dtype(x.dtype(), [&]<class T>(Type<T>) {
    if constexpr (is_floating<T>) nll<T>(x, t, labels_of<T>(x, weight, ignore), normalizers, loss);
  });
}

void nll_grad_cpu(const Array& x, const Array& normalizers, const Array& t, const Array& weight,
                  std::int64_t ignore, const Array& gy, const Array& gx) {
  const GilRelease work(gx.size());
  visit_dtype(gx.dtype(), [&]<class T>(Type<T>) {
    if constexpr (is_floating<T>) {
      nll_grad<T>(x, normalizers, t, labels_of<T>(gx, weight, ignore), gy, gx);
    }
  });
}

[[maybe_unused]] const bool registered = loss_kernels.add(0, {nll_cpu, nll_grad_cpu});

}  // namespace
}  // namespace renga
