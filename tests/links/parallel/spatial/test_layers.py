"""Layers of sharded images against the serial ones, for many shapes and grids."""

import numpy as np
import pytest
from hypothesis import assume, given, strategies as st

import renga
import renga.functions as F
import renga.links as L
from renga.communicators import local
from renga.links.parallel import spatial as S
from renga.links.parallel.spatial.grid import index_in
from renga.utils.conv import get_conv_outsize, get_deconv_outsize
from tests.links.parallel.differentiate import array, differentiate

GRIDS = [(1,), (2,), (3,), (4,), (1, 2), (1, 3), (2, 2), (1, 4), (4, 1), (2, 1, 2)]


def shard_of(grid, x):
    """This rank's shard of an image."""
    extents = x.shape[2:]
    box = grid.boxes(extents)[grid.rank]
    return x[index_in(box, tuple(map(range, extents)))].copy()


def check(shape, shared_memory, serial, make, x):
    """Compares a link, made for a grid, with the serial one."""
    weight, weight2 = array(5, *serial(x).shape), array(6, *x.shape)
    expected = differentiate(serial, x, weight, weight2)

    def on_rank(comm):
        grid = S.SpatialGrid(comm, shape)
        link = make(grid)
        own = [shard_of(grid, a) for a in (x, weight, weight2)]
        found = differentiate(link, *own)
        # First-order gradients again, by the backward pass that records no graph.
        link.cleargrads()
        fast_x = renga.Variable(own[0])
        F.sum(own[1] * F.square(link(fast_x))).backward()
        found["fast gx"] = fast_x.grad
        found.update((f"fast g{p.name}", p.grad) for p in link.params())
        for name in ("y", "gx", "ggx", "fast gx"):
            found[name] = S.gather_image(grid, found[name]).array
        return found

    found_by_ranks = local.run(
        on_rank, ranks=int(np.prod(shape)), shared_memory=shared_memory
    )
    for rank, found in enumerate(found_by_ranks):
        for name, actual in found.items():
            wanted = expected[name.replace("fast ", "")]
            np.testing.assert_allclose(
                actual,
                wanted,
                rtol=1e-10,
                # A window that covers padding alone has -inf.
                atol=1e-10 * (1 + abs(wanted[np.isfinite(wanted)]).max(initial=0)),
                err_msg=f"{name} on rank {rank}",
            )


@st.composite
def windows(draw):
    """A grid, a window and images that are no smaller."""
    shape = draw(st.sampled_from(GRIDS))
    axes = max(2, len(shape))
    per_axis = st.tuples(*[st.integers(1, 3)] * axes)
    ksize, stride = draw(per_axis), draw(per_axis)
    pad = draw(st.tuples(*[st.integers(0, 3)] * axes))
    dilate = draw(st.tuples(*[st.sampled_from([1, 1, 2, 3])] * axes))
    least = [max(1, (k - 1) * d + 1 - 2 * p) for k, d, p in zip(ksize, dilate, pad)]
    extents = tuple(n + draw(st.integers(0, 6 if axes == 2 else 2)) for n in least)
    return dict(
        shape=shape, ksize=ksize, stride=stride, pad=pad, dilate=dilate,
        extents=extents, n=draw(st.integers(0, 2)), shared_memory=draw(st.booleans()),
    )  # fmt: skip


@st.composite
def convolutions(draw):
    groups = draw(st.sampled_from([1, 1, 2]))
    channels = [groups * draw(st.integers(1, 2)) for _ in range(2)]
    flags = dict(nobias=draw(st.booleans()), cover_all=draw(st.booleans()))
    return dict(draw(windows()), groups=groups, channels=channels, **flags)


def layers_of(case, *links):
    """The serial link and a function that makes the parallel one, with its values."""
    serial, parallel = links
    inputs, outputs = case["channels"]
    first, second = (outputs, inputs) if "Convolution" in serial.__name__ else (
        inputs, outputs,
    )  # fmt: skip
    W = array(1, first, second // case["groups"], *case["ksize"])
    options = {k: case[k] for k in ("stride", "pad", "dilate", "groups", "nobias")}
    options.update(initialW=W, initial_bias=array(2, outputs))
    given_axes = (len(case["ksize"]),) if serial.__name__.endswith("ND") else ()
    args = (*given_axes, inputs, outputs, case["ksize"])
    if serial is L.ConvolutionND:
        options["cover_all"] = case["cover_all"]
    if "outsize" in case:
        options["outsize"] = case["outsize"]

    def make(grid):
        renga.config.dtype = np.float64
        return parallel(grid, *args, **options)

    with renga.using_config("dtype", np.float64):
        return serial(*args, **options), make


@given(convolutions())
def test_convolution(case):
    flat = len(case["ksize"]) == 2 and not case["cover_all"]
    links = (L.Convolution2D, S.SpatialConvolution2D) if flat else (
        L.ConvolutionND, S.SpatialConvolutionND,
    )  # fmt: skip
    serial, make = layers_of(case, *links)
    x = array(3, case["n"], case["channels"][0], *case["extents"])
    check(case["shape"], case["shared_memory"], serial, make, x)


@given(convolutions())
def test_deconvolution(case):
    flat = len(case["ksize"]) == 2
    geometry = [case[k] for k in ("extents", "ksize", "stride", "pad", "dilate")]
    outsize = tuple(
        get_deconv_outsize(n, k, s, p, d=d) + (s - 1) * case["cover_all"]
        for n, k, s, p, d in zip(*geometry)
    )
    assume(min(outsize) > 0)
    case["outsize"] = outsize
    links = (L.Deconvolution2D, S.SpatialDeconvolution2D) if flat else (
        L.DeconvolutionND, S.SpatialDeconvolutionND,
    )  # fmt: skip
    serial, make = layers_of(case, *links)
    x = array(3, case["n"], case["channels"][0], *case["extents"])
    check(case["shape"], case["shared_memory"], serial, make, x)


class Layer(renga.Link):
    """A function as a link."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


def check_function(case, serial, parallel, x):
    def make(grid):
        return Layer(lambda x: parallel(grid, x))

    check(case["shape"], case["shared_memory"], Layer(serial), make, x)


def pooling_of(case):
    """ksize, stride and a pad that leaves no window without a pixel."""
    pad = [p % k for p, k in zip(case["pad"], case["ksize"])]
    return case["ksize"], case["stride"], pad


@given(windows(), st.booleans())
def test_max_pooling(case, cover_all):
    window = pooling_of(case)
    x = array(3, case["n"], 2, *np.maximum(case["extents"], case["ksize"]))
    check_function(
        case,
        lambda x: F.max_pooling_nd(x, *window, cover_all),
        lambda grid, x: S.spatial_max_pooling(grid, x, *window, cover_all),
        x,
    )


def test_pooling_links():
    for shape in ((3,), (2, 2)):
        x = array(3, 2, 2, 7, 6)
        for serial, make in (
            (
                lambda x: F.max_pooling_2d(x, 3, 2, 1, False),
                lambda grid: S.SpatialMaxPooling2D(grid, 3, 2, 1, False),
            ),
            (
                lambda x: F.average_pooling_2d(x, (2, 3), None, (1, 0)),
                lambda grid: S.SpatialAveragePooling2D(grid, (2, 3), None, (1, 0)),
            ),
        ):
            check(shape, True, Layer(serial), make, x)


@given(windows())
def test_average_pooling(case):
    window = pooling_of(case)
    x = array(3, case["n"], 2, *np.maximum(case["extents"], case["ksize"]))
    check_function(
        case,
        lambda x: F.average_pooling_nd(x, *window),
        lambda grid, x: S.spatial_average_pooling(grid, x, *window),
        x,
    )


@given(windows(), st.booleans())
def test_unpooling(case, cover_all):
    window = pooling_of(case)
    x = array(3, case["n"], 2, *case["extents"])
    sizes = x.shape[2:]
    outsize = [get_deconv_outsize(*one, cover_all) for one in zip(sizes, *window)]
    pooled = [get_conv_outsize(*one, cover_all) for one in zip(outsize, *window)]
    assume(min(outsize) > 0 and pooled == list(sizes))
    check_function(
        case,
        lambda x: F.unpooling_nd(x, *window, None, cover_all),
        lambda grid, x: S.spatial_unpooling(grid, x, *window, None, cover_all),
        x,
    )


@given(windows(), st.sampled_from(["nearest", "bilinear"]), st.booleans())
def test_resize(case, mode, align_corners):
    x = array(3, case["n"], 2, *case["extents"][:2])
    size = tuple(
        n * k // s + 1 for n, k, s in zip(x.shape[2:], case["ksize"], case["stride"])
    )
    if len(case["shape"]) > 2:
        case["shape"] = (2, 2)
    options = dict(mode=mode, align_corners=align_corners)
    check_function(
        case,
        lambda x: F.resize_images(x, size, **options),
        lambda grid, x: S.spatial_resize_images(grid, x, size, **options),
        x,
    )


@pytest.mark.parametrize("shape", [(2,), (3,), (2, 2)])
def test_upsampling_is_the_inverse_of_max_pooling(shape):
    x, window = array(0, 2, 3, 7, 6), (3, 2, 1)
    y, at = F.max_pooling_2d(x, *window, return_indices=True)
    wanted = F.upsampling_2d(y, at, *window, x.shape[2:]).array

    def on_rank(comm):
        grid = S.SpatialGrid(comm, shape)
        own = S.scatter_image(grid, x)
        y, at = S.spatial_max_pooling(grid, own, *window, return_indices=True)
        z = S.spatial_upsampling_2d(grid, y, at, *window, x.shape[2:])
        return S.gather_image(grid, z).array

    for found in local.run(on_rank, ranks=int(np.prod(shape))):
        np.testing.assert_array_equal(found, wanted)


@given(windows(), st.booleans())
def test_batch_normalization(case, use_beta):
    x = array(3, 2 * case["n"] + 1, 3, *case["extents"]) + 5
    assume(x[:, 0].size > 1)
    options = dict(
        initial_gamma=array(1, 3), initial_beta=array(2, 3), use_beta=use_beta
    )

    def make(grid):
        renga.config.dtype = np.float64
        return S.SpatialBatchNormalization(grid, 3, **options)

    with renga.using_config("dtype", np.float64):
        serial = L.BatchNormalization(3, **options)
    check(case["shape"], case["shared_memory"], serial, make, x)


ORDERS = {
    "channels first": lambda x: x.copy(),
    "channels last": lambda x: np.moveaxis(np.moveaxis(x, 1, -1).copy(), -1, 1),
    "from the end": lambda x: x[:, ::-1, :, ::-1].copy()[:, ::-1, :, ::-1],
}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("transposed", [False, True])
def test_float32_images_in_any_memory_format(order, transposed):
    x, W, b = (
        np.float32(array(*s)) for s in [(1, 1, 3, 9, 6), (2, 3, 3, 3, 3), (3, 3)]
    )
    weight = np.float32(array(4, 1, 3, 9, 6))
    serial = F.deconvolution_2d if transposed else F.convolution_2d
    parallel = S.spatial_deconvolution if transposed else S.spatial_convolution

    def gradients(convolve, x, weight, *parameters):
        xs = [renga.Variable(a) for a in (x, *parameters)]
        y = convolve(*xs, pad=1)
        y.grad = weight
        y.backward()
        return y.array, *(v.grad for v in xs)

    exact = (a.astype(float) for a in (x, weight, W, b))
    y, gx, gW, gb = gradients(serial, *exact)

    def on_rank(comm):
        grid = S.SpatialGrid(comm)
        parts = [ORDERS[order](shard_of(grid, a)) for a in (x, weight)]
        return gradients(lambda *xs, pad: parallel(grid, *xs, pad=pad), *parts, W, b)

    found = list(zip(*local.run(on_rank, ranks=2)))
    for parts, wanted in zip(found[:2], (y, gx)):
        np.testing.assert_allclose(np.concatenate(parts, 2), wanted, atol=2e-5)
    for grads, wanted in zip(found[2:], (gW, gb)):
        for grad in grads:
            np.testing.assert_allclose(grad, wanted, atol=2e-5)
