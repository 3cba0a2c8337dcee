"""batch_normalization and fixed_batch_normalization against their definition."""

import warnings

import numpy as np
import pytest

import renga
import renga.functions as F
from renga import gradient_check
from renga.utils.type_check import InvalidType

# x's shape and the axes that statistics are taken over.
SHAPES = [
    ((8, 5), (0,)),
    ((4, 3, 5, 6), (0, 2, 3)),
    ((4, 37, 3, 3), (0, 2, 3)),
    ((5, 2, 3, 4), (0,)),
    ((4, 3, 6), (1,)),
    ((3, 2, 4, 5), (0, 1, 3)),
]


def kept(shape, axis):
    return tuple(n for i, n in enumerate(shape) if i not in axis)


def definition(x, gamma, beta, axis, mean=None, var=None, eps=2e-5):
    def along(p):
        return p.reshape([1 if i in axis else n for i, n in enumerate(x.shape)])

    mean = x.mean(axis, keepdims=True) if mean is None else along(mean)
    var = x.var(axis, keepdims=True) if var is None else along(var)
    return along(gamma) * (x - mean) / np.sqrt(var + eps) + along(beta)


def operands(shape, axis, dtype="d"):
    rng = np.random.RandomState(0)
    x = rng.normal(1, 2, shape).astype(dtype)
    return [x] + [
        rng.uniform(0.5, 2, kept(shape, axis)).astype(dtype) for _ in range(4)
    ]


def layouts(x):
    """The same values in the orders of memory that kernels treat differently."""
    yield x
    last = np.moveaxis(np.ascontiguousarray(np.moveaxis(x, 1, -1)), -1, 1)
    yield last
    yield np.asfortranarray(x[::-1])[::-1]
    yield np.repeat(x, 2, 0)[::2]


@pytest.mark.parametrize("shape, axis", SHAPES)
@pytest.mark.parametrize("dtype, tolerance", [("d", 1e-12), ("f", 1e-5), ("e", 5e-3)])
def test_values(shape, axis, dtype, tolerance):
    x, gamma, beta, mean, var = operands(shape, axis, dtype)
    wide = [a.astype("d") for a in (x, gamma, beta, mean, var)]
    own = definition(*wide[:3], axis)
    fixed = definition(*wide[:3], axis, *wide[3:])
    for view in layouts(x):
        y = F.batch_normalization(view, gamma, beta, axis=axis)
        np.testing.assert_allclose(y.array, own, tolerance, tolerance)
        z = F.fixed_batch_normalization(view, gamma, beta, mean, var, axis=axis)
        np.testing.assert_allclose(z.array, fixed, tolerance, tolerance)
        assert y.dtype == z.dtype == dtype


# 4 MB of halves, 8 MiB and more of others. Rows are of pixels or, in another layout, of
# channels: whole vectors and others.
@pytest.mark.parametrize("channels, pixels", [(32, (64, 64)), (33, (65, 63))])
@pytest.mark.parametrize(
    "samples, dtype, tolerance",
    [(9, "d", 1e-9), (17, "f", 1e-4), (17, "e", 1e-2)],
)
def test_large_arrays(channels, pixels, samples, dtype, tolerance):
    axis = (0, 2, 3)
    x, gamma, beta, *_ = operands((samples, channels, *pixels), axis, dtype)
    gy = np.random.RandomState(1).standard_normal(x.shape).astype(dtype)
    wide = x.astype("d")
    g = gy.astype("d") * gamma.astype("d")[:, None, None]
    inverse = 1 / np.sqrt(wide.var(axis, keepdims=True) + 2e-5)
    normalized = (wide - wide.mean(axis, keepdims=True)) * inverse
    of_normalized = normalized * (g * normalized).mean(axis, keepdims=True)
    gx = inverse * (g - g.mean(axis, keepdims=True) - of_normalized)
    expected = definition(wide, gamma.astype("d"), beta.astype("d"), axis)
    for view in layouts(x):
        v = renga.Variable(view)
        y = F.batch_normalization(v, gamma, beta)
        y.grad = gy
        y.backward()
        np.testing.assert_allclose(y.array, expected, tolerance, tolerance)
        np.testing.assert_allclose(v.grad, gx, tolerance, tolerance)


@pytest.mark.parametrize("shape, axis", SHAPES)
def test_gradients(shape, axis):
    arrays = operands(shape, axis)
    rng = np.random.RandomState(1)
    gy = rng.uniform(-1, 1, shape)
    functions = [
        (lambda *a: F.batch_normalization(*a, axis=axis), arrays[:3]),
        (lambda *a: F.fixed_batch_normalization(*a, axis=axis), arrays),
    ]
    for function, inputs in functions:
        for view in layouts(inputs[0]):
            moved = (view, *inputs[1:])
            gradient_check.check_backward(function, moved, gy, dtype="d", atol=1e-4)
        ggs = tuple(rng.uniform(-1, 1, a.shape) for a in inputs)
        gradient_check.check_double_backward(
            function, tuple(inputs), gy, ggs, dtype="d", atol=1e-4
        )


def test_composed_and_fused_gradients_are_equal():
    x, gamma, beta, _, _ = (
        renga.Variable(a) for a in operands((4, 3, 5, 6), (0, 2, 3))
    )
    y = F.batch_normalization(x, gamma, beta)
    gy = renga.Variable(np.random.RandomState(1).uniform(-1, 1, y.shape))
    both = [
        renga.grad([y], [x, gamma, beta], [gy], enable_double_backprop=composed)
        for composed in (False, True)
    ]
    for fused, composed in zip(*both):
        np.testing.assert_allclose(fused.array, composed.array, 1e-10, 1e-12)


def test_running_statistics():
    shape, axis = (4, 3, 5, 6), (0, 2, 3)
    x, gamma, beta, mean, var = operands(shape, axis, "f")
    m = 4 * 5 * 6
    expected_mean = 0.8 * mean + 0.2 * x.astype("d").mean(axis)
    expected_var = 0.8 * var + 0.2 * x.astype("d").var(axis) * m / (m - 1)
    spaced = np.repeat(var, 2)[::2]
    F.batch_normalization(
        x, gamma, beta, running_mean=mean, running_var=spaced, decay=0.8
    )
    np.testing.assert_allclose(mean, expected_mean, 1e-6)
    np.testing.assert_allclose(spaced, expected_var, 1e-6)


def test_one_element_has_no_variance():
    mean, var = np.zeros(3, "f"), np.ones(3, "f")
    one = np.ones(3, "f")
    x = np.float32([[[1]], [[2]], [[3]]])[None]
    with pytest.warns(UserWarning, match="a batch of one sample"):
        y = F.batch_normalization(x, one, one, running_mean=mean, running_var=var)
    np.testing.assert_array_equal(y.array, np.ones((1, 3, 1, 1)))
    np.testing.assert_allclose(mean, [0.1, 0.2, 0.3], 1e-6)
    np.testing.assert_allclose(var, np.full(3, 0.9), 1e-6)


@pytest.mark.parametrize("layout", range(2))
def test_variance_far_from_zero(layout):
    """A difference of squares would lose a variance of 1 around a mean of 10 000."""
    x = np.random.RandomState(0).normal(1e4, 1, (16, 4, 20, 20)).astype("f")
    mean, var = np.zeros(4, "f"), np.zeros(4, "f")
    one = np.ones(4, "f")
    view = list(layouts(x))[layout]
    y = F.batch_normalization(view, one, 0 * one, running_mean=mean, running_var=var)
    exact = x.astype("d")
    m = 16 * 400
    np.testing.assert_allclose(10 * var, exact.var((0, 2, 3)) * m / (m - 1), 1e-5)
    expected = definition(exact, one, 0 * one, (0, 2, 3))
    np.testing.assert_allclose(y.array, expected, atol=2e-3)


@pytest.mark.parametrize("x_dtype, parameter_dtype", ["ef", "fe", "fd", "df"])
def test_mixed_dtypes(x_dtype, parameter_dtype):
    arrays = operands((6, 3, 4, 4), (0, 2, 3))
    x = renga.Variable(arrays[0].astype(x_dtype))
    gamma, beta = (renga.Variable(a.astype(parameter_dtype)) for a in arrays[1:3])
    y = F.batch_normalization(x, gamma, beta)
    gy = np.random.RandomState(0).uniform(-1, 1, y.shape).astype(x_dtype)
    y.grad = gy
    y.backward()
    assert y.dtype == x.grad.dtype == x_dtype
    assert gamma.grad.dtype == beta.grad.dtype == parameter_dtype
    expected = gy.astype("d").sum((0, 2, 3))
    np.testing.assert_allclose(beta.grad, expected, 1e-2, 1e-2)


def test_threads_do_not_change_the_result():
    import ctypes

    openmp = ctypes.CDLL("libgomp.so.1")
    before = openmp.omp_get_max_threads()
    x = np.random.RandomState(0).normal(size=(16, 24, 16, 16)).astype("f")
    one = np.ones(24, "f")
    try:
        for view in list(layouts(x))[:2]:
            results = []
            for threads in (1, 2, 3):
                openmp.omp_set_num_threads(threads)
                leaf = renga.Variable(view)
                y = F.batch_normalization(leaf, one, one)
                (gx,) = renga.grad([y], [leaf], [renga.Variable(np.sin(x))])
                results.append(np.concatenate([y.array, gx.array]))
            for other in results[1:]:
                np.testing.assert_array_equal(results[0], other)
    finally:
        openmp.omp_set_num_threads(before)


@pytest.mark.parametrize("dtype", ["e", "f", "d"])
@pytest.mark.parametrize("shape", [(1, 1, 0, 1), (1, 3, 0, 2), (2, 3, 0), (0, 3)])
def test_empty_images_do_not_read_what_lies_behind_them(shape, dtype):
    def empty():
        return renga.Variable(np.ndarray(shape, dtype, buffer=np.full(64, 5, dtype)))

    gamma, beta = (renga.Variable(np.ones(shape[1], dtype)) for _ in range(2))
    y = F.batch_normalization(empty(), gamma, beta)
    for gradient in renga.grad([y], [gamma, beta], [empty()]):
        np.testing.assert_array_equal(gradient.array, np.zeros(shape[1]))


def test_no_elements():
    one = np.ones(3, "f")
    mean, var = np.zeros(3, "f"), np.ones(3, "f")
    x, gamma = renga.Variable(np.empty((0, 3, 2, 2), "f")), renga.Variable(one)
    y = F.batch_normalization(x, gamma, one, running_mean=mean, running_var=var)
    y.grad = np.empty(y.shape, "f")
    y.backward()
    assert y.shape == x.grad.shape == (0, 3, 2, 2)
    np.testing.assert_array_equal(gamma.grad, np.zeros(3))
    np.testing.assert_array_equal([mean, var], [np.zeros(3), one])


@pytest.mark.parametrize(
    "error, call",
    [
        (InvalidType, lambda x, p: F.batch_normalization(x.astype("i"), p, p)),
        (InvalidType, lambda x, p: F.batch_normalization(x, p[:2], p)),
        (InvalidType, lambda x, p: F.batch_normalization(x, p, p[:2])),
        (InvalidType, lambda x, p: F.batch_normalization(x, p, p, axis=(0,))),
        (InvalidType, lambda x, p: F.batch_normalization(x, p, p, running_mean=p[:2])),
        (InvalidType, lambda x, p: F.fixed_batch_normalization(x, p, p, p[:2], p)),
        (RuntimeError, lambda x, p: F.batch_normalization(x, p, p, axis=(0, 3, 2))),
        (TypeError, lambda x, p: F.batch_normalization(x, p, p, momentum=0.1)),
    ],
)
def test_refuses(error, call):
    with pytest.raises(error):
        call(np.ones((2, 3, 4, 4), "f"), np.ones(3, "f"))


@pytest.mark.parametrize(
    ("shape", "axis", "warns"),
    [
        ((1, 3), None, True),
        ((1, 3, 1, 1), None, True),
        ((1, 1, 3), (0, 1), True),
        ((1, 3, 4, 4), None, False),
        ((1, 5, 3), (0, 1), False),
        ((2, 3), None, False),
        ((0, 3), None, False),
    ],
)
def test_one_sample_warns_as_in_chainer(shape, axis, warns):
    one = np.ones(3)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        y = F.batch_normalization(np.ones(shape), one, 2 * one, axis=axis)
    assert [each.category for each in caught] == [UserWarning] * warns
    if warns:
        np.testing.assert_array_equal(y.array, np.full(shape, 2.0))
