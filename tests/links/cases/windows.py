"""Convolutions of any number of axes as sums over kernel elements, in NumPy."""

import itertools

import numpy


def hold(actual, expected, tolerance=2e-6):
    """Asserts that they differ by less than ``tolerance`` times the largest value."""
    assert actual.shape == expected.shape
    numpy.testing.assert_allclose(
        actual, expected, rtol=0, atol=tolerance * numpy.abs(expected).max()
    )


def per_axis(option, axes):
    return option if isinstance(option, tuple) else (option,) * axes


def kernel_elements(x, ksize, stride, pad, dilate):
    """``(offset, elements of all windows at this offset)`` of the padded ``x``."""
    axes = len(ksize)
    stride, pad, dilate = (per_axis(o, axes) for o in (stride, pad, dilate))
    x = numpy.pad(x, [(0, 0)] * (x.ndim - axes) + [(p, p) for p in pad])
    outs = [
        (n - d * (k - 1) - 1) // s + 1
        for n, k, s, d in zip(x.shape[-axes:], ksize, stride, dilate)
    ]
    for offset in itertools.product(*map(range, ksize)):
        window = tuple(
            slice(o * d, o * d + s * (n - 1) + 1, s)
            for o, s, d, n in zip(offset, stride, dilate, outs)
        )
        yield offset, x[(..., *window)]


def along_channels(b, axes):
    return b.reshape((-1,) + (1,) * axes)


def convolution(x, W, b=0, stride=1, pad=0, dilate=1, groups=1):
    axes = W.ndim - 2
    ys = [
        sum(
            numpy.einsum("ni...,oi->no...", elements, w[(..., *offset)])
            for offset, elements in kernel_elements(
                part, W.shape[2:], stride, pad, dilate
            )
        )
        for part, w in zip(numpy.split(x, groups, 1), numpy.split(W, groups))
    ]
    y = numpy.concatenate(ys, 1)
    return y + along_channels(b, axes) if numpy.ndim(b) else y


def deconvolution(x, W, b=0, stride=1, pad=0, dilate=1, groups=1, outsize=None):
    """The transpose: each input adds its multiple of the filters to the output."""
    axes = W.ndim - 2
    stride, pad, dilate = (per_axis(o, axes) for o in (stride, pad, dilate))
    sizes = zip(x.shape[2:], W.shape[2:], stride, dilate)
    full = [s * (n - 1) + d * (k - 1) + 1 for n, k, s, d in sizes]
    if outsize is not None:
        full = [max(n, o + 2 * p) for n, o, p in zip(full, outsize, pad)]
    ys = []
    for part, w in zip(numpy.split(x, groups, 1), numpy.split(W, groups)):
        y = numpy.zeros((len(x), W.shape[1], *full))
        for offset in itertools.product(*map(range, W.shape[2:])):
            window = tuple(
                slice(o * d, o * d + s * (n - 1) + 1, s)
                for o, s, d, n in zip(offset, stride, dilate, x.shape[2:])
            )
            elements = numpy.einsum("ni...,io->no...", part, w[(..., *offset)])
            y[(..., *window)] += elements
        ys.append(y)
    y = numpy.concatenate(ys, 1)
    sizes = outsize or [n - 2 * p for n, p in zip(full, pad)]
    y = y[(..., *(slice(p, p + n) for p, n in zip(pad, sizes)))]
    return y + along_channels(b, axes) if numpy.ndim(b) else y


def pooled(x, reduce, ksize, stride, pad, fill):
    axes = 2
    x = numpy.pad(x, [(0, 0)] * 2 + [(pad, pad)] * axes, constant_values=fill)
    elements = [part for _, part in kernel_elements(x, (ksize,) * axes, stride, 0, 1)]
    return reduce(numpy.stack(elements), axis=0)
