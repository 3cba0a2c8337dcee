// Elements picked by integer arrays.
#pragma once

#include <optional>

#include "devices/kernel_table.h"
#include "ops/list.h"

namespace renga {

// Their indices are contiguous int64 and have been checked.
struct IndexingKernels {
  // y[i] = table[ids[i]] for rows; rows whose id is `ignore` become 0.
  void (*take)(const Array& table, const Array& ids, std::optional<std::int64_t> ignore,
               const Array& y);
  // table[ids[i]] += rows[i], in order of i; ids equal to `ignore` are passed over.
  void (*put)(const Array& rows, const Array& ids, std::optional<std::int64_t> ignore,
              const Array& table);
  // y[i] = x[i, t[i]].
  void (*select)(const Array& x, const Array& t, const Array& y);
  // x[i, t[i]] = y[i].
  void (*place)(const Array& y, const Array& t, const Array& x);
};
extern KernelTable<IndexingKernels> indexing_kernels;

Variable embed_id(const Array& ids, const Variable& w,
                  std::optional<std::int64_t> ignore_label = {});
Variable select_item(const Variable& x, const Array& t);

template <class Visit>
void list_indexing_ops(Visit&& visit) {
  visit(Op{"embed_id", "(...), (n, D) -> (... D)", "Rows of W named by integers."}, &embed_id,
        Arg{"x"}, Arg{"W"}, Default<std::optional<std::int64_t>>{"ignore_label", std::nullopt});
  visit(Op{"select_item", "(N, C), (N,) -> (N,)", "One element of each row."}, &select_item,
        Arg{"x"}, Arg{"t"});
}

}  // namespace renga
