// Gathering and scattering by integer arrays.
#pragma once

#include <optional>

#include "devices/kernel_table.h"
#include "ops/list.h"

namespace renga {

// Indices have to be from 0 to n - 1, or `ignored`. Texts are literals.
struct IndexRange {
  const char* op;
  const char* name;
  std::int64_t n;
  std::optional<std::int64_t> ignored;
};

// Indices are contiguous int64 and checked.
struct IndexingKernels {
  // y[p, i] = table[p, ids[i]] for the rows of all p: table is (P, n, Q), y is of P count Q
  // contiguous elements; rows whose id is `ignore` become 0.
  void (*gather_rows)(const Array& table, const Array& ids, std::optional<std::int64_t> ignore,
                      const Array& y);
  // table[p, ids[i]] += rows[p, i], in order of i; ids equal to `ignore` are skipped.
  void (*scatter_add_rows)(const Array& rows, const Array& ids, std::optional<std::int64_t> ignore,
                           const Array& table);
  // y[i] = x[i, t[i]].
  void (*gather_items)(const Array& x, const Array& t, const Array& y);
  // x[i, t[i]] = y[i].
  void (*scatter_items)(const Array& y, const Array& t, const Array& x);
  // checked[i] = indices[i], or 0 outside of [0, n) and where it is not `ignored`; the first of
  // these is an error of the device's, thrown later (IndexRange's `op` and `name` tell what). The
  // kernel is null for devices whose indices the host checks.
  void (*check)(const Array& indices, const IndexRange& range, const Array& checked) = nullptr;
  // For entries i in order, whose ids are -1 where they are left out: y[targets[i]] += data[i]
  // x[sources[i]]; and g[i] = the sum of the products of a[sources[i]] and b[targets[i]]. Operands
  // are contiguous float32 or float64. Both kernels are null for devices that compose them.
  void (*add_products)(const Array& data, const Array& x, const Array& sources,
                       const Array& targets, const Array& y) = nullptr;
  void (*dot_rows)(const Array& a, const Array& b, const Array& sources, const Array& targets,
                   const Array& g) = nullptr;
};
extern KernelTable<IndexingKernels> indexing_kernels;

// Rows of `table` (P, n, Q) named by integers of one axis: (P, count, Q).
Array gather(const Array& table, const Array& ids);
// Rows (P, count, Q) added in their order to zeros (P, n, Q).
Array scatter_add(const Array& rows, const Array& ids, std::int64_t n);

Variable embed_id(const Array& ids, const Variable& w,
                  std::optional<std::int64_t> ignore_label = {});
Variable select_item(const Variable& x, const Array& t);
// Elements of an axis by integers of any shape, which replaces it; negative ones count from the
// end.
Variable take(const Variable& x, const Array& indices, std::int64_t axis = 0);
// x with y, of the shape of take(x, indices, axis), added there, in order.
Variable index_add(const Variable& x, const Array& indices, const Variable& y,
                   std::int64_t axis = 0);
// The product of a sparse matrix, which has data at rows `targets` and columns `sources`, and of
// the dense matrix x; entries with index -1 are left out.
Variable sparse_product(const Variable& data, const Array& sources, const Array& targets,
                        const Variable& x, std::int64_t rows);
// A view of the elements first + sum(index * strides), counted in row-major order.
Variable as_strided(const Variable& x, const Shape& shape, const Dims& strides,
                    std::int64_t first = 0);

template <class Visit>
void list_indexing_ops(Visit&& visit) {
  constexpr Traits rows{.locality = Locality::batchwise, .inputs = 1};
  constexpr Traits items{.locality = Locality::batchwise};
  visit(Op{"embed_id", "(...), (n, D) -> (... D)", "Rows of W named by integers.", rows,
           "EmbedIDFunction"},
        &embed_id, Arg{"x"}, Arg{"W"},
        Default<std::optional<std::int64_t>>{"ignore_label", std::nullopt});
  visit(Op{"select_item", "(N, C), (N,) -> (N,)", "One element of each row.", items}, &select_item,
        Arg{"x"}, Arg{"t"});
  const Default axis{"axis", std::int64_t{0}};
  visit(Op{"take",
           "(... n ...), (k...) -> (... k... ...)",
           "Elements of an axis, by integers.",
           {},
           "GetItem"},
        &take, Arg{"x"}, Arg{"indices"}, axis);
  visit(Op{"index_add", "(... n ...), (k...), (... k... ...) -> (... n ...)",
           "Elements added to those that integers name along an axis."},
        &index_add, Arg{"x"}, Arg{"indices"}, Arg{"y"}, axis);
  visit(
      Op{"sparse_product", "(k,), (k,), (k,), (n, D) -> (rows, D)",
         "A sparse matrix, of entries at columns `sources` and rows `targets`, times a dense one."},
      &sparse_product, Arg{"data"}, Arg{"sources"}, Arg{"targets"}, Arg{"x"}, Arg{"rows"});
  visit(Op{"as_strided", "(...) -> shape",
           "A view of the elements first + sum(index * strides), in row-major order."},
        &as_strided, Arg{"x"}, Arg{"shape"}, Arg{"strides"}, Default{"first", std::int64_t{0}});
}

}  // namespace renga
