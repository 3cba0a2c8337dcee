"""Convolutions, pooling and gates by their definitions, with NumPy in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.special as sp


def each(option: Any, n: int) -> tuple[int, ...]:
    return tuple(option) if isinstance(option, (tuple, list)) else (option,) * n


def outsize(n: int, k: int, s: int, p: int, d: int = 1, cover_all: bool = False) -> int:
    reach = d * (k - 1) + 1
    free = n + 2 * p - reach
    return (free + s - 1 if cover_all else free) // s + 1


def convolution(
    x: Any,
    W: Any,
    b: Any = None,
    stride: Any = 1,
    pad: Any = 0,
    cover_all: bool = False,
    dilate: Any = 1,
    groups: int = 1,
) -> Any:
    """The sum over kernel offsets of the weights times the pixels at that offset."""
    axes = x.ndim - 2
    stride, pad, dilate = each(stride, axes), each(pad, axes), each(dilate, axes)
    kernel = W.shape[2:]
    outs = [
        outsize(*of_axis, cover_all)
        for of_axis in zip(x.shape[2:], kernel, stride, pad, dilate)
    ]
    if min(outs, default=1) < 1:
        raise ValueError("no output")
    after = [p + s for p, s in zip(pad, stride)]
    x = np.pad(x, [(0, 0), (0, 0), *zip(pad, after)])
    xs = x.reshape(len(x), groups, x.shape[1] // groups, *x.shape[2:])
    filters = W.reshape(groups, W.shape[0] // groups, *W.shape[1:])
    y = np.zeros((len(x), groups, filters.shape[1], *outs))
    for offset in np.ndindex(*kernel):
        pixels = tuple(
            slice(t * d, t * d + (n - 1) * s + 1, s)
            for t, d, n, s in zip(offset, dilate, outs, stride)
        )
        y += np.einsum(
            "ngc...,gfc->ngf...", xs[(..., *pixels)], filters[(..., *offset)]
        )
    y = y.reshape(len(x), W.shape[0], *outs)
    return y if b is None else y + b.reshape(-1, *(1,) * axes)


def deconvolution(
    x: Any,
    W: Any,
    b: Any = None,
    stride: Any = 1,
    pad: Any = 0,
    out: Any = None,
    dilate: Any = 1,
    groups: int = 1,
) -> Any:
    """Adds a scaled filter for every element of ``x``."""
    axes = x.ndim - 2
    stride, pad, dilate = each(stride, axes), each(pad, axes), each(dilate, axes)
    kernel, sizes = W.shape[2:], x.shape[2:]
    full = [
        (n - 1) * s + d * (k - 1) + 1
        for n, s, k, d in zip(sizes, stride, kernel, dilate)
    ]
    outs = [n - 2 * p for n, p in zip(full, pad)] if out is None else out
    xs = x.reshape(len(x), groups, x.shape[1] // groups, *sizes)
    filters = W.reshape(groups, W.shape[0] // groups, *W.shape[1:])
    wide = [max(n, p + o) for n, p, o in zip(full, pad, outs)]
    y = np.zeros((len(x), groups, W.shape[1], *wide))
    for offset in np.ndindex(*kernel):
        pixels = tuple(
            slice(t * d, t * d + (n - 1) * s + 1, s)
            for t, d, n, s in zip(offset, dilate, sizes, stride)
        )
        part = np.einsum("ngc...,gcf->ngf...", xs, filters[(..., *offset)])
        y[(..., *pixels)] += part
    y = y[(..., *(slice(p, p + o) for p, o in zip(pad, outs)))]
    y = y.reshape(len(x), groups * W.shape[1], *outs)
    return y if b is None else y + b.reshape(-1, *(1,) * axes)


def windows_of(
    x: Any, ksize: Any, stride: Any, pad: Any, cover_all: bool, fill: float
) -> Any:
    """The elements of every window on the last axis."""
    axes = x.ndim - 2
    ksize, pad = each(ksize, axes), each(pad, axes)
    stride = ksize if stride is None else each(stride, axes)
    outs = [
        outsize(n, k, s, p, 1, cover_all)
        for n, k, s, p in zip(x.shape[2:], ksize, stride, pad)
    ]
    if min(outs, default=1) < 1:
        raise ValueError("no output")
    after = [p + s + k for p, s, k in zip(pad, stride, ksize)]
    x = np.pad(x, [(0, 0), (0, 0), *zip(pad, after)], constant_values=fill)
    parts = []
    for offset in np.ndindex(*ksize):
        pixels = tuple(
            slice(t, t + (n - 1) * s + 1, s) for t, n, s in zip(offset, outs, stride)
        )
        parts.append(x[(..., *pixels)])
    return np.stack(parts, -1)


def max_pooling(
    x: Any,
    ksize: Any,
    stride: Any = None,
    pad: Any = 0,
    cover_all: bool = True,
    return_indices: bool = False,
) -> Any:
    found = windows_of(x, ksize, stride, pad, cover_all, -np.inf)
    y = found.max(-1)
    return [y, found.argmax(-1)] if return_indices else y


def average_pooling(
    x: Any, ksize: Any, stride: Any = None, pad: Any = 0, pad_value: Any = 0
) -> Any:
    found = windows_of(x, ksize, stride, pad, False, 0.0)
    if pad_value is None:
        inside = windows_of(np.ones_like(x), ksize, stride, pad, False, 0.0)
        return found.sum(-1) / inside.sum(-1)
    return found.mean(-1)


def im2col(
    x: Any,
    ksize: Any,
    stride: Any = 1,
    pad: Any = 0,
    cover_all: bool = False,
    dilate: Any = 1,
) -> Any:
    ksize, channels = each(ksize, 2), x.shape[1]
    basis = np.eye(ksize[0] * ksize[1]).reshape(-1, 1, *ksize)
    filters = np.tile(basis, (channels, 1, 1, 1))
    return convolution(x, filters, None, stride, pad, cover_all, dilate, channels)


def unpooling(
    x: Any, ksize: Any, stride: Any, pad: Any, outs: Any, cover_all: bool
) -> Any:
    """Every pixel added to the whole of its window."""
    axes = x.ndim - 2
    ksize, pad = each(ksize, axes), each(pad, axes)
    stride = ksize if stride is None else each(stride, axes)
    channels = x.shape[1]
    ones = np.ones((channels, 1, *ksize))
    if outs is None:
        less = [s - 1 if cover_all else 0 for s in stride]
        outs = [
            s * (n - 1) + k - 2 * p - c
            for n, k, s, p, c in zip(x.shape[2:], ksize, stride, pad, less)
        ]
    if min(outs) < 1:
        raise ValueError("no output")
    return deconvolution(x, ones, None, stride, pad, list(outs), 1, channels)


def normalized(
    x: Any,
    gamma: Any,
    beta: Any,
    axis: tuple[int, ...],
    mean: Any = None,
    var: Any = None,
    eps: float = 2e-5,
) -> Any:
    """Batch normalization; gamma spans the axes that are not in ``axis``."""
    kept = [1 if i in axis else n for i, n in enumerate(x.shape)]
    mean = x.mean(axis, keepdims=True) if mean is None else mean.reshape(kept)
    var = x.var(axis, keepdims=True) if var is None else var.reshape(kept)
    y = (x - mean) / np.sqrt(var + eps)
    return y * gamma.reshape(kept) + beta.reshape(kept)


def lstm_cell(c: Any, a: Any, i: Any, f: Any, o: Any) -> tuple[Any, Any]:
    c = np.tanh(a) * sp.expit(i) + c * sp.expit(f)
    return c, np.tanh(c) * sp.expit(o)


def lstm(c: Any, x: Any) -> list[Any]:
    gates = (x[:, k::4] for k in range(4))
    new, h = lstm_cell(c[: len(x)], *gates)
    return [np.concatenate([new, c[len(x) :]]), h]


def negative_log_softmax(x: Any, t: Any, weight: Any, ignore: int) -> Any:
    """Per element of ``t``; 0 where it is ``ignore``."""
    t = t.astype(int)
    keep = t != ignore
    if t.size and not ((t[keep] >= 0) & (t[keep] < x.shape[1])).all():
        raise ValueError("no such class")
    safe = np.where(keep, t, 0)
    log_p = sp.log_softmax(x, 1)
    picked = np.take_along_axis(log_p, safe[:, None], 1)[:, 0]
    weight = np.ones(x.shape[1]) if weight is None else weight
    return np.where(keep, -weight[safe] * picked, 0.0)
