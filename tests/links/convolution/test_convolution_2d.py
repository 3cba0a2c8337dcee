"""Convolution2D and Deconvolution2D against sums over kernel elements."""

import numpy
import pytest

import renga
import renga.links as L


def make_input(*shape):
    rng = numpy.random.default_rng(0)
    return rng.normal(size=shape).astype(numpy.float32)


def correlate(x, W, b, stride, pad, dilate, groups):
    """The sum over kernel elements, in float64."""
    x = numpy.pad(x.astype("f8"), ((0, 0), (0, 0), (pad[0],) * 2, (pad[1],) * 2))
    outputs, inputs, rows, columns = W.shape
    height = (x.shape[2] - dilate[0] * (rows - 1) - 1) // stride[0] + 1
    width = (x.shape[3] - dilate[1] * (columns - 1) - 1) // stride[1] + 1
    y = numpy.zeros((len(x), outputs, height, width)) + b[:, None, None]
    for o in range(outputs):
        first = o // (outputs // groups) * inputs
        for i, r, c in numpy.ndindex(inputs, rows, columns):
            y[:, o] += (
                W[o, i, r, c]
                * (
                    x[
                        :,
                        first + i,
                        r * dilate[0] :: stride[0],
                        c * dilate[1] :: stride[1],
                    ][:, :height, :width]
                )
            )
    return y


CASES = [
    {},
    {"stride": 2, "pad": 1},
    {"stride": (2, 1), "pad": (0, 2), "dilate": (1, 2)},
    {"groups": 2, "pad": 1},
]


def expected_of(link, x):
    b = numpy.zeros(link.out_channels) if link.b is None else link.b.array
    window = (link.stride, link.pad, link.dilate, link.groups)
    return correlate(x, link.W.array, b, *window)


@pytest.mark.parametrize("options", CASES)
@pytest.mark.parametrize("nobias", [False, True])
def test_convolution(options, nobias):
    link = L.Convolution2D(
        4, 6, (3, 2), nobias=nobias, initial_bias=make_input(6), **options
    )
    x = make_input(2, 4, 7, 8)
    y = link(x)
    numpy.testing.assert_allclose(y.array, expected_of(link, x), rtol=1e-4, atol=1e-5)
    assert [name for name, _ in link.namedparams()] == ["/W", "/b"][: 2 - nobias]


@pytest.mark.parametrize("options", CASES)
def test_deconvolution_is_the_adjoint(options):
    """<conv(x), y> = <x, deconv(y)> for every x and y, with the same weight."""
    forward = L.Convolution2D(4, 6, 3, nobias=True, **options)
    backward = L.Deconvolution2D(
        6, 4, 3, nobias=True, initialW=forward.W.array, outsize=(7, 8), **options
    )
    x = make_input(2, 4, 7, 8)
    y = forward(x).array
    other = make_input(*y.shape)
    back = backward(other)
    assert back.shape == x.shape
    left = numpy.vdot(expected_of(forward, x), other)
    numpy.testing.assert_allclose(numpy.vdot(x, back.array), left, rtol=1e-4)


def test_deconvolution_with_bias():
    link = L.Deconvolution2D(2, 3, 3, initial_bias=numpy.array([1, 2, 3]))
    y = link(numpy.zeros((1, 2, 4, 4), numpy.float32))
    assert y.shape == (1, 3, 6, 6)
    for channel, value in enumerate([1, 2, 3]):
        numpy.testing.assert_array_equal(y.array[0, channel], numpy.full((6, 6), value))


@pytest.mark.parametrize("link", [L.Convolution2D, L.Deconvolution2D])
@pytest.mark.parametrize("sizes", [(None, 6, 3), (6, 3)])
def test_channels_of_the_first_input(link, sizes):
    layer = link(*sizes)
    assert (layer.in_channels, layer.out_channels, layer.ksize) == (None, 6, 3)
    assert not layer.W.is_initialized
    layer(make_input(1, 2, 5, 5))
    shape = (6, 2, 3, 3) if link is L.Convolution2D else (2, 6, 3, 3)
    assert layer.W.shape == shape


@pytest.mark.parametrize("link", [L.Convolution2D, L.Deconvolution2D])
def test_groups_divide_the_channels(link):
    with pytest.raises(ValueError, match="input channels .* 3 and 2"):
        link(3, 4, 3, groups=2)
    with pytest.raises(ValueError, match="output channels .* 3 and 2"):
        link(4, 3, 3, groups=2)
    with pytest.raises(ValueError, match="input channels"):
        link(None, 4, 3, groups=2)(make_input(1, 3, 5, 5))
    with pytest.raises(TypeError):
        link(3, 4, 3, nonsense=1)


def test_wrong_channels():
    with pytest.raises(renga.utils.type_check.InvalidType):
        L.Convolution2D(3, 4, 3)(make_input(1, 2, 5, 5))


@pytest.mark.parametrize("link", [L.Convolution2D, L.Deconvolution2D])
def test_gradients(link):
    layer = link(2, 3, 3, pad=1)
    layer.cleargrads()
    y = layer(make_input(2, 2, 5, 5))
    gy = y.grad = make_input(*y.shape)
    y.backward()
    expected = gy.sum((0, 2, 3))
    numpy.testing.assert_allclose(layer.b.grad, expected, rtol=1e-4, atol=1e-5)
    # The output is linear in W, so <gW, W> is <gy, y> without the bias.
    left = numpy.vdot(layer.W.grad, layer.W.array)
    numpy.testing.assert_allclose(left, numpy.vdot(gy, y.array), rtol=1e-4)


def test_from_params():
    W, b = make_input(4, 2, 3, 2), make_input(4)
    link = L.Convolution2D.from_params(W, b, stride=2, groups=2)
    assert (link.in_channels, link.out_channels, link.ksize) == (4, 4, (3, 2))
    numpy.testing.assert_array_equal(link.W.array, W)
    numpy.testing.assert_array_equal(link.b.array, b)
    assert L.Convolution2D.from_params(W).b.array.tolist() == [0] * 4
    assert L.Convolution2D.from_params(W, b, nobias=True).b is None


def test_text():
    assert str(L.Convolution2D(3, 4, 3, pad=(1, 2))) == (
        "Convolution2D(in_channels=3, out_channels=4, ksize=3, stride=(1, 1), "
        "pad=(1, 2), nobias=False, dilate=(1, 1), groups=1)"
    )
    assert str(L.Deconvolution2D(3, 4, 3)) == "Deconvolution2D()"
