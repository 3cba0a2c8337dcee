// Fourier transforms of complex numbers, given as real and imaginary parts.
#pragma once

#include <vector>

#include "devices/kernel_table.h"
#include "ops/list.h"

namespace renga {

struct FourierKernels {
  // y[k] = factor times the sum of x[j] e^(-2 pi i j k / n) over the last axis, for each of the
  // rows
  // (..., n) of floats or doubles, dense and row-major.
  void (*transform)(const Array& real, const Array& imaginary, double factor, const Array& y_real,
                    const Array& y_imaginary);
};
extern KernelTable<FourierKernels> fourier_kernels;

// Along the last axis; the real and the imaginary parts.
std::vector<Variable> fft(const Variable& real, const Variable& imaginary);
std::vector<Variable> ifft(const Variable& real, const Variable& imaginary);

template <class Visit>
void list_fourier_ops(Visit&& visit) {
  visit(Op{"fft", "(..., n), (..., n) -> (..., n), (..., n)",
           "Fourier transform along the last axis, of real and imaginary parts."},
        &fft, Arg{"real"}, Arg{"imaginary"});
  visit(Op{"ifft", "(..., n), (..., n) -> (..., n), (..., n)",
           "Inverse of the Fourier transform along the last axis."},
        &ifft, Arg{"real"}, Arg{"imaginary"});
}

}  // namespace renga
