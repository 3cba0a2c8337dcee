"""Windows over images: output sizes, im2col and col2im."""

from __future__ import annotations

import numpy

from renga.backends import cuda


def get_conv_outsize(
    size: int, k: int, s: int, p: int, cover_all: bool = False, d: int = 1
) -> int:
    """Output size of a convolution of kernel k, stride s, padding p, dilation d."""
    reach = k + (k - 1) * (d - 1)
    if cover_all:
        return (size + p * 2 - reach + s - 1) // s + 1
    return (size + p * 2 - reach) // s + 1


def get_deconv_outsize(
    size: int, k: int, s: int, p: int, cover_all: bool = False, d: int = 1
) -> int:
    """The input size whose convolution has output size ``size``."""
    reach = (k - 1) * d + 1
    if cover_all:
        return s * (size - 1) + reach - s + 1 - 2 * p
    return s * (size - 1) + reach - 2 * p


def im2col_cpu(
    img: numpy.ndarray,
    kh: int,
    kw: int,
    sy: int,
    sx: int,
    ph: int,
    pw: int,
    pval: float = 0,
    cover_all: bool = False,
    dy: int = 1,
    dx: int = 1,
    out_h: int | None = None,
    out_w: int | None = None,
) -> numpy.ndarray:
    """The elements of each window.

    Shapes:
        img: (N, C, H, W)
        return: (N, C, kh, kw, out_h, out_w)

    Raises:
        ValueError: the window does not fit.
    """
    n, c, h, w = img.shape
    if out_h is None:
        out_h = get_conv_outsize(h, kh, sy, ph, cover_all, dy)
    if out_w is None:
        out_w = get_conv_outsize(w, kw, sx, pw, cover_all, dx)
    if out_h <= 0 or out_w <= 0:
        raise ValueError(
            f"im2col: expected a window of at most the padded image, got a window of "
            f"({kh}, {kw}) on {img.shape} padded by ({ph}, {pw})"
        )
    widths = ((0, 0), (0, 0), (ph, ph + sy - 1), (pw, pw + sx - 1))
    padded = numpy.pad(img, widths, mode="constant", constant_values=pval)
    col = numpy.empty((n, c, kh, kw, out_h, out_w), img.dtype)
    for j in range(kh):
        rows = slice(j * dy, j * dy + sy * out_h, sy)
        for i in range(kw):
            columns = slice(i * dx, i * dx + sx * out_w, sx)
            col[:, :, j, i] = padded[:, :, rows, columns]
    return col


def im2col(
    img: numpy.ndarray,
    kh: int,
    kw: int,
    sy: int,
    sx: int,
    ph: int,
    pw: int,
    cover_all: bool = False,
    dy: int = 1,
    dx: int = 1,
    out_h: int | None = None,
    out_w: int | None = None,
) -> numpy.ndarray:
    """The elements of each window, with zeros around the image."""
    return im2col_cpu(img, kh, kw, sy, sx, ph, pw, 0, cover_all, dy, dx, out_h, out_w)


def col2im(
    col: numpy.ndarray,
    sy: int,
    sx: int,
    ph: int,
    pw: int,
    h: int,
    w: int,
    dy: int = 1,
    dx: int = 1,
) -> numpy.ndarray:
    """The transpose of ``im2col``: adds the elements of every window to the image.

    Shapes:
        col: (N, C, kh, kw, out_h, out_w)
        return: (N, C, h, w)
    """
    n, c, kh, kw, out_h, out_w = col.shape
    rows_needed = max(h + 2 * ph + sy - 1, (kh - 1) * dy + sy * out_h)
    columns_needed = max(w + 2 * pw + sx - 1, (kw - 1) * dx + sx * out_w)
    padded = numpy.zeros((n, c, rows_needed, columns_needed), col.dtype)
    for j in range(kh):
        rows = slice(j * dy, j * dy + sy * out_h, sy)
        for i in range(kw):
            columns = slice(i * dx, i * dx + sx * out_w, sx)
            padded[:, :, rows, columns] += col[:, :, j, i]
    return padded[:, :, ph : ph + h, pw : pw + w]


col2im_cpu = col2im
#: Of CuPy's arrays; RuntimeError without CuPy.
im2col_gpu = col2im_gpu = cuda.unavailable
