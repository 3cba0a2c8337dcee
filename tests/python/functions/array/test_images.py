"""Windows and sizes of images against NumPy."""

import numpy
import pytest

import renga
import renga.functions as F
from renga.utils.type_check import InvalidType
from tests.python.functions.cases.function_check import check

rng = numpy.random.default_rng(0)
x = rng.normal(size=(2, 3, 5, 6))


def windows(x, ksize, stride, pad, dilate, outs):
    x = numpy.pad(x, [(0, 0), (0, 0), *((p, p + 9) for p in pad)])
    y = numpy.zeros((len(x), x.shape[1], *ksize, *outs))
    for i, j, r, s in numpy.ndindex(*ksize, *outs):
        row, column = r * stride[0] + i * dilate[0], s * stride[1] + j * dilate[1]
        y[:, :, i, j, r, s] = x[:, :, row, column]
    return y.reshape(len(x), -1, *outs)


@pytest.mark.parametrize(
    ("ksize", "stride", "pad", "cover_all", "dilate", "outs"),
    [
        ((2, 2), (1, 1), (0, 0), False, (1, 1), (4, 5)),
        ((3, 2), (2, 1), (1, 0), False, (1, 2), (3, 4)),
        ((2, 3), (2, 2), (0, 1), True, (1, 1), (3, 4)),
        ((2, 2), (3, 3), (0, 0), False, (1, 1), (2, 2)),
    ],
)
def test_im2col(ksize, stride, pad, cover_all, dilate, outs):
    check(
        lambda x: F.im2col(x, ksize, stride, pad, cover_all, dilate),
        lambda x: windows(x, ksize, stride, pad, dilate, outs),
        x,
    )


def linear(x, axis, m, align_corners):
    n = x.shape[axis]
    centres = numpy.arange(n) if align_corners else (numpy.arange(n) + 0.5) / n
    wanted = numpy.linspace(0, n - 1, m)
    if not align_corners:
        wanted = (numpy.arange(m) + 0.5) / m
    return numpy.apply_along_axis(
        lambda row: numpy.interp(wanted, centres, row), axis, x
    )


@pytest.mark.parametrize("shape", [(5, 6), (9, 4), (2, 13), (1, 1)])
@pytest.mark.parametrize("align_corners", [True, False])
def test_bilinear(shape, align_corners):
    def reference(x):
        x = linear(x, 2, shape[0], align_corners)
        return linear(x, 3, shape[1], align_corners)

    def resized(x):
        return F.resize_images(x, shape, align_corners=align_corners)

    check(resized, reference, x)


@pytest.mark.parametrize("shape", [(5, 6), (9, 13), (2, 3), (4, 12)])
@pytest.mark.parametrize("align_corners", [True, False])
@pytest.mark.parametrize("channels", [3, 11])
@pytest.mark.parametrize("order", ["channels first", "channels last"])
def test_float16_is_rounded_once(shape, align_corners, channels, order):
    x = rng.normal(size=(2, channels, 5, 6)).astype("e")
    gy = rng.normal(size=(2, channels, *shape)).astype("e")
    rows, columns = (
        linear(numpy.eye(n), 0, m, align_corners) for n, m in zip((5, 6), shape)
    )
    if order == "channels last":
        x, gy = (
            numpy.ascontiguousarray(a.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)
            for a in (x, gy)
        )
    image = renga.Variable(x)
    y = F.resize_images(image, shape, align_corners=align_corners)
    y.grad = gy
    y.backward()
    wide = dict(rtol=2**-11 + 1e-5, atol=2e-6)
    value = rows @ x.astype("d") @ columns.T
    gradient = rows.T @ gy.astype("d") @ columns
    assert y.dtype == image.grad.dtype == numpy.float16
    numpy.testing.assert_allclose(y.array.astype("d"), value, **wide)
    numpy.testing.assert_allclose(image.grad.astype("d"), gradient, **wide)


@pytest.mark.parametrize("shape", [(5, 6), (9, 4), (2, 13), (1, 1)])
def test_nearest(shape):
    rows, columns = (
        [int(i * n / m) for i in range(m)] for n, m in zip(x.shape[2:], shape)
    )
    check(
        lambda x: F.resize_images(x, shape, mode="nearest"),
        lambda x: x[:, :, rows][:, :, :, columns],
        x,
    )


FAULTS = [
    (lambda: F.im2col(x[0], 2), InvalidType),
    (lambda: F.resize_images(x[0], (2, 2)), InvalidType),
    (lambda: F.resize_images(x.astype("i"), (2, 2)), InvalidType),
    (lambda: F.resize_images(x, (2, 2), mode="cubic"), ValueError),
    (lambda: F.resize_images(x, (2, 2), "nearest"), TypeError),
]


@pytest.mark.parametrize(("wrong", "error"), FAULTS)
def test_faults(wrong, error):
    with pytest.raises(error):
        wrong()
