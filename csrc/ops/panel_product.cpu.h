// Matrix products on panels: matrices cut into strips of kPanel columns, each strip dense, so that
// a product walks through memory in one direction. Winograd convolution is made of these.
#pragma once

#include <cstdint>

namespace renga {

inline constexpr std::int64_t kPanel = 32;     // columns of a panel
inline constexpr std::int64_t kPanelRows = 8;  // a panel's rows come in groups of so many

// c = a b, where a has `panels` panels (rows, kPanel), `a_step` floats apart, b is
// (panels * kPanel, kPanel) and c (rows, kPanel). `rows` is a multiple of kPanelRows.
void multiply_panels(const float* a, std::int64_t a_step, std::int64_t panels, const float* b,
                     float* c, std::int64_t rows);

// c += a^T b (c = a^T b unless `accumulate`), where a and b are (depth, kPanel) and c is
// (kPanel, kPanel).
void multiply_transposed_panel(const float* a, const float* b, std::int64_t depth, float* c,
                               bool accumulate);

}  // namespace renga
