"""Convolutions, as sums over kernel elements."""

from __future__ import annotations

import numpy

import renga.links as L
from tests.links.cases import windows

from .row import Case, link

rng = numpy.random.default_rng(0)
IMAGE = rng.normal(size=(2, 4, 6, 5))
SMALL = rng.normal(size=(2, 4, 3, 3))
LINE = rng.normal(size=(2, 3, 7))
BODY = rng.normal(size=(1, 2, 4, 3, 3))


def convolution(**options):
    return lambda p, x: windows.convolution(x, p["/W"], p.get("/b", 0), **options)


def deconvolution(**options):
    return lambda p, x: windows.deconvolution(x, p["/W"], p.get("/b", 0), **options)


def depthwise(p, x, **options):
    W = p["/W"].transpose(1, 0, 2, 3)
    W = W.reshape(-1, 1, *W.shape[2:])
    return windows.convolution(x, W, p["/b"], groups=x.shape[1], **options)


def local(p, x, stride=1):
    W = p["/W"]
    y = sum(
        numpy.einsum("nihw,ohwi->nohw", elements, W[(..., *offset)])
        for offset, elements in windows.kernel_elements(x, W.shape[-2:], stride, 0, 1)
    )
    return y + p.get("/b", 0)


PICTURE = rng.normal(size=(2, 3, 6, 5))


def sample(image, row, column):
    """Bilinear interpolation, with zeros around the image."""
    top, left = int(numpy.floor(row)), int(numpy.floor(column))
    value = numpy.zeros(len(image))
    for r in (top, top + 1):
        for c in (left, left + 1):
            weight = (1 - abs(row - r)) * (1 - abs(column - c))
            if 0 <= r < image.shape[1] and 0 <= c < image.shape[2]:
                value += weight * image[:, r, c]
    return value


def sampler(x, offset, W, b, stride, pad):
    outputs, _, rows, columns = W.shape
    y = numpy.zeros((len(x), outputs, *offset.shape[2:]))
    for n, i, j in numpy.ndindex(len(x), *offset.shape[2:]):
        for k, (r, c) in enumerate(numpy.ndindex(rows, columns)):
            # The columns' offsets come first, then the rows'.
            dc, dr = offset[n, k, i, j], offset[n, k + rows * columns, i, j]
            row, column = i * stride - pad + r + dr, j * stride - pad + c + dc
            y[n, :, i, j] += W[:, :, r, c] @ sample(x[n], row, column)
    return y + windows.along_channels(b, 2) if numpy.ndim(b) else y


def deformable(p, x, stride=1, pad=0):
    offset = windows.convolution(
        x, p["/offset_conv/W"], p.get("/offset_conv/b", 0), stride, pad
    )
    W, b = p["/deform_conv/W"], p.get("/deform_conv/b", 0)
    return sampler(x, offset, W, b, stride, pad)


link(
    "ConvolutionND",
    cases={
        "": Case(
            lambda: L.ConvolutionND(
                2, 4, 2, (3, 2), 2, (1, 0), dilate=(1, 2), groups=2
            ),
            (IMAGE,),
            convolution(stride=2, pad=(1, 0), dilate=(1, 2), groups=2),
            lazy=lambda: L.ConvolutionND(
                2, None, 2, (3, 2), 2, (1, 0), dilate=(1, 2), groups=2
            ),
        ),
        "without bias": Case(
            lambda: L.ConvolutionND(2, 4, 2, 3, nobias=True), (IMAGE,), convolution()
        ),
    },
    created="L.ConvolutionND(2, 4, 2, 3, groups=2)",
    edges="run(L.ConvolutionND(2, 4, 2, 3, groups=2), s(N, 4, 5, 5))",
    errors=[
        "L.ConvolutionND(0, 3, 4, 3) -> ValueError",
        "L.ConvolutionND(-1, 3, 4, 3) -> ValueError",
        "L.ConvolutionND(2**40, 3, 4, 3) -> ValueError",
        "L.ConvolutionND(30, 3, 4, 3) -> ValueError",
        "L.ConvolutionND(2.0, 3, 4, 3) -> TypeError",
        "L.ConvolutionND(2, 3, 4, 0) -> ValueError",
        "L.ConvolutionND(2, 3, 4, (3, 3, 3)) -> AssertionError",
    ],
    onnx="exported",
)


link(
    "Convolution1D",
    cases=Case(
        lambda: L.Convolution1D(3, 2, 3, 2, 1),
        (LINE,),
        convolution(stride=2, pad=1),
        lazy=lambda: L.Convolution1D(None, 2, 3, 2, 1),
    ),
    created=[
        "L.Convolution1D(3, 2, 3)",
        "L.Convolution1D(None, 2, 3)",
    ],
    edges="run(L.Convolution1D(3, 2, 3), s(N, 3, 5))",
    errors="L.Convolution1D(3, 4, 0) -> ValueError",
    onnx="exported",
)


link(
    "Convolution3D",
    cases=Case(lambda: L.Convolution3D(2, 3, 2), (BODY,), convolution()),
    created="L.Convolution3D(3, 2, 3)",
    edges="run(L.Convolution3D(3, 2, 3), s(N, 3, 5, 5, 5))",
    errors="L.Convolution3D(3, 4, -1) -> ValueError",
    onnx="exported",
)


link(
    "Deconvolution2D",
    cases=Case(
        lambda: L.Deconvolution2D(4, 2, 3, 2, 1, dilate=(1, 2), groups=2),
        (SMALL,),
        deconvolution(stride=2, pad=1, dilate=(1, 2), groups=2),
        lazy=lambda: L.Deconvolution2D(None, 2, 3, 2, 1, dilate=(1, 2), groups=2),
    ),
    created="L.Deconvolution2D(3, 2, 3)",
    edges="run(L.Deconvolution2D(3, 2, 3), s(N, 3, 3, 3))",
    errors=[
        "L.Deconvolution2D(3, 4, 0) -> ValueError",
        "L.Deconvolution2D(3, 4, -1) -> ValueError",
        "L.Deconvolution2D(3, 4, 2**40) -> MemoryError",
        "L.Deconvolution2D(4, 4, 3, groups=0) -> ValueError",
        "L.Deconvolution2D(4, 4, 3)(d(1, 4, 5, 5)) -> InvalidType",
        "L.Deconvolution2D(4, 4, 3, outsize=(-1, -1))(f(1, 4, 5, 5)) -> InvalidType",
    ],
    onnx="exported",
)


link(
    "DeconvolutionND",
    cases=Case(
        lambda: L.DeconvolutionND(2, 4, 2, 3, 2, outsize=(8, 7), groups=2),
        (SMALL,),
        deconvolution(stride=2, outsize=(8, 7), groups=2),
        lazy=lambda: L.DeconvolutionND(2, None, 2, 3, 2, outsize=(8, 7), groups=2),
    ),
    created="L.DeconvolutionND(2, 4, 2, 3, groups=2)",
    edges="run(L.DeconvolutionND(2, 4, 2, 3, groups=2), s(N, 4, 3, 3))",
    errors=[
        "L.DeconvolutionND(2, 3, 4, 0) -> ValueError",
        "L.DeconvolutionND(2, 3, 4, -2) -> ValueError",
    ],
    onnx="exported",
)


link(
    "Deconvolution1D",
    cases=Case(
        lambda: L.Deconvolution1D(3, 2, 3, 2, 1, nobias=True),
        (LINE,),
        deconvolution(stride=2, pad=1),
    ),
    created="L.Deconvolution1D(3, 2, 3)",
    edges="run(L.Deconvolution1D(3, 2, 3), s(N, 3, 3))",
    errors="L.Deconvolution1D(3, 4, 0) -> ValueError",
    onnx="exported",
)


link(
    "Deconvolution3D",
    cases=Case(
        lambda: L.Deconvolution3D(2, 3, 2),
        (BODY,),
        deconvolution(),
        lazy=lambda: L.Deconvolution3D(None, 3, 2),
    ),
    created="L.Deconvolution3D(3, 2, 3)",
    edges="run(L.Deconvolution3D(3, 2, 3), s(N, 3, 2, 2, 2))",
    errors="L.Deconvolution3D(3, -4, 1) -> ValueError",
    onnx="exported",
)


link(
    "DilatedConvolution2D",
    cases=Case(
        lambda: L.DilatedConvolution2D(4, 2, 3, (1, 2), 1, (2, 1)),
        (IMAGE,),
        convolution(stride=(1, 2), pad=1, dilate=(2, 1)),
        lazy=lambda: L.DilatedConvolution2D(2, 3, None, (1, 2), 1, (2, 1)),
    ),
    created="L.DilatedConvolution2D(3, 2, 3)",
    edges="run(L.DilatedConvolution2D(3, 2, 3, dilate=2), s(N, 3, 6, 6))",
    errors=[
        "L.DilatedConvolution2D(3, 4, 0) -> ValueError",
        "L.DilatedConvolution2D(3, 4, 3, dilate=0)(f(1, 3, 9, 9)) -> ValueError",
    ],
    onnx="exported",
)


link(
    "DepthwiseConvolution2D",
    cases=Case(
        lambda: L.DepthwiseConvolution2D(4, 2, (2, 3), 2, 1),
        (IMAGE,),
        lambda p, x: depthwise(p, x, stride=2, pad=1),
        lazy=lambda: L.DepthwiseConvolution2D(None, 2, (2, 3), 2, 1),
    ),
    created="L.DepthwiseConvolution2D(3, 2, 3)",
    edges="run(L.DepthwiseConvolution2D(3, 2, 3), s(N, 3, 5, 5))",
    errors=[
        "L.DepthwiseConvolution2D(3, 0, 3) -> DepthwiseConvolution2D",
        "L.DepthwiseConvolution2D(3, -2, 3) -> ValueError",
        "L.DepthwiseConvolution2D(3, 2, 0) -> ValueError",
    ],
    onnx="exported",
)


link(
    "LocalConvolution2D",
    cases={
        "": Case(
            lambda: L.LocalConvolution2D(4, 2, (6, 5), 3, 2),
            (IMAGE,),
            lambda p, x: local(p, x, 2),
            lazy=lambda: L.LocalConvolution2D(None, 2, None, 3, 2),
        ),
        "without bias": Case(
            lambda: L.LocalConvolution2D(4, 2, (6, 5), (2, 3), nobias=True),
            (IMAGE,),
            local,
            lazy=lambda: L.LocalConvolution2D(4, 2, None, (2, 3), nobias=True),
        ),
    },
    created="L.LocalConvolution2D(3, 2, 5, 3)",
    edges="run(L.LocalConvolution2D(3, 2, 5, 3), s(N, 3, 5, 5))",
    errors=[
        "L.LocalConvolution2D(3, 4, 5, 0) -> ValueError",
        "L.LocalConvolution2D(3, 4, 5, 9) -> ValueError",
        "L.LocalConvolution2D(3, 4, -5, 3) -> ValueError",
        "L.LocalConvolution2D(3, 4, 5, 3, 0) -> ValueError",
        "L.LocalConvolution2D(3, 4, 2**40, 3) -> MemoryError",
    ],
    onnx="exported",
)


link(
    "DeformableConvolution2D",
    cases={
        "": Case(
            lambda: L.DeformableConvolution2D(3, 2, (3, 2), 2, 1),
            (PICTURE,),
            lambda p, x: deformable(p, x, 2, 1),
            lazy=lambda: L.DeformableConvolution2D(None, 2, (3, 2), 2, 1),
            half=False,  # a rounded offset may take another pixel
        ),
        "without biases": Case(
            lambda: L.DeformableConvolution2D(
                3, 2, (1, 2), offset_nobias=True, deform_nobias=True
            ),
            (PICTURE,),
            deformable,
            half=False,
        ),
    },
    nothing=[(0, 2, 3, 3)],
    created=[
        "L.DeformableConvolution2D(3, 2, 3)",
        "L.DeformableConvolution2D(None, 2, 3)",
    ],
    edges="run(L.DeformableConvolution2D(3, 2, 3), s(N, 3, 5, 5))",
    errors=[
        "L.DeformableConvolution2D(3, 4, 0) -> ValueError",
        "L.DeformableConvolution2D(3, 4, -1) -> ValueError",
    ],
    onnx="exported",
)


link(
    "Convolution2D",
    cases={
        "": Case(
            lambda: L.Convolution2D(4, 2, 3, (2, 1), (0, 2), dilate=(1, 2)),
            (IMAGE,),
            convolution(stride=(2, 1), pad=(0, 2), dilate=(1, 2)),
            lazy=lambda: L.Convolution2D(2, 3, None, (2, 1), (0, 2), dilate=(1, 2)),
        ),
        "of groups without bias": Case(
            lambda: L.Convolution2D(4, 2, (3, 2), 1, 1, groups=2, nobias=True),
            (IMAGE,),
            convolution(pad=1, groups=2),
            lazy=lambda: L.Convolution2D(None, 2, (3, 2), 1, 1, groups=2, nobias=True),
        ),
    },
    created=[
        "L.Convolution2D(3, 2, 3)",
        "L.Convolution2D(2, 3)",
    ],
    edges=[
        "run(L.Convolution2D(3, 2, 3), s(N, 3, 5, 5))",
        "run(L.Convolution2D(None, 2, 3), s(N, 3, 5, 5))",
    ],
    errors=[
        "L.Convolution2D(3, 4, 0) -> ValueError",
        "L.Convolution2D(3, 4, -1) -> ValueError",
        "L.Convolution2D(3, 4, 2**40) -> MemoryError",
        "L.Convolution2D(3, 4, 2**64) -> MemoryError",
        "L.Convolution2D(3, 4, 2.5) -> TypeError",
        "L.Convolution2D(3, 4, (3, 3, 3)) -> ValueError",
        "L.Convolution2D(3, 4, (3,)) -> ValueError",
        "L.Convolution2D(3, 4, '33') -> TypeError",
        "L.Convolution2D(0, 4, 3) -> Convolution2D",
        "L.Convolution2D(-3, 4, 3) -> ValueError",
        "L.Convolution2D(3, -4, 3) -> ValueError",
        "L.Convolution2D(3, 0, 3) -> Convolution2D",
        "L.Convolution2D(2**40, 2**40, 3) -> MemoryError",
        "L.Convolution2D(4, 4, 3, groups=0) -> ValueError",
        "L.Convolution2D(4, 4, 3, groups=-1) -> ValueError",
        "L.Convolution2D(4, 4, 3, groups=2**64) -> ValueError",
        "L.Convolution2D(4, 4, 3, groups=1.5) -> Convolution2D",
        "L.Convolution2D(4, 4, 3, groups=3) -> ValueError",
        "L.Convolution2D(4, 4, 3, stride=0) -> Convolution2D",
        "L.Convolution2D(4, 4, 3, pad=-1) -> Convolution2D",
        "L.Convolution2D(4, 4, 3, stride=0)(f(1, 4, 5, 5)) -> ValueError",
        "L.Convolution2D(None, 4, 0)(f(1, 4, 5, 5)) -> ValueError",
        "L.Convolution2D(4, 4, 3)(d(1, 4, 5, 5)) -> InvalidType",
        "L.Convolution2D(4, 4) -> Convolution2D",
    ],
    onnx="exported",
)
