"""``config.dtype = mixed_bfloat16``: dtypes and accuracy."""

import contextlib

import numpy as np
import pytest
from scipy.special import log_softmax

import renga
import renga.functions as F
import renga.links as L
from renga import _core
from tests.python.ops.test_coverage import (
    ALL,
    CASES,
    gradients,
    outputs,
    random_arrays,
    references,
    weighted_sum,
    weights_for,
)
from tests.rounding import as_bfloat16, rounded_to_bfloat16

# A unit in the last place of a bfloat16 number near 1.
UNIT = 2.0**-7


@pytest.fixture(autouse=True)
def mixed():
    with renga.using_config("dtype", renga.mixed_bfloat16):
        yield


def test_values_are_rounded_to_nearest_even():
    exact = [1 + UNIT / 2, 1 + 1.5 * UNIT, 1 + 0.6 * UNIT, -np.inf, 0]
    expected = [1, 1 + 2 * UNIT, 1 + UNIT, -np.inf, 0]
    for count in (1, 7, 40):  # the core rounds single numbers and vectors
        for x, y in zip(exact, expected):
            assert (as_bfloat16([x] * count).array == y).all()
    assert np.isnan(as_bfloat16([np.nan]).array[0])


def test_arrays_are_exposed_as_read_only_float32():
    y = as_bfloat16([1.0, 2.0])
    assert y.dtype == np.float32
    assert y.array is y.array
    with pytest.raises(ValueError, match="read-only"):
        y.array[0] = 3
    exact = F.cast(y, np.float32)
    assert exact.array.flags.writeable
    assert F.add(exact, np.full(2, UNIT / 4, "f")).array[0] != 1


def test_a_float32_gradient_is_accepted():
    x = _core.Variable(np.ones((2, 3), "f"))
    y = F.matmul(x, np.ones((3, 3), "f"))
    y.grad = np.full((2, 3), 0.5, "f")
    y.backward()
    np.testing.assert_array_equal(x.grad, np.full((2, 3), 1.5, "f"))


@pytest.mark.parametrize("shape", [(3, 5), (300, 1), (300, 1030), (1, 1030), (1030,)])
@pytest.mark.parametrize("order", ["CC", "CF", "FC"])
def test_bfloat16_and_float32_make_float32(shape, order):
    rng = np.random.default_rng(0)
    whole = (300, 1030) if np.prod(shape) > 15 else shape
    exact = np.array(rng.normal(size=whole), "f", order=order[0])
    rounded = as_bfloat16(rng.normal(size=shape))
    if order[1] == "F":
        rounded = F.transpose(_core.copy_of(F.transpose(rounded)))
    expected = exact - np.asarray(rounded.array)
    for y, value in (
        (_core.ops.subtract(exact, rounded), expected),
        (_core.ops.subtract(rounded, exact), -expected),
    ):
        assert _core.dtype_name(y) == "float32"
        np.testing.assert_array_equal(y.array, value)


DETERMINISTIC = [
    p for p in ALL if "f" in CASES[p[0]][p[1]].dtypes and p[0] != "dropout"
]


@pytest.mark.parametrize("name, i", DETERMINISTIC)
def test_every_operation(name, i):
    case = CASES[name][i]
    xs = [as_bfloat16(x) for x in random_arrays(case, "f")]
    exact = references(case, [x.array for x in xs])
    for y, expected in zip(outputs(case, xs), exact):
        assert y.shape == np.shape(expected)
        scale = max(1.0, float(np.abs(expected).max(initial=0)))
        np.testing.assert_allclose(y.array, expected, 4 * UNIT, 4 * UNIT * scale)


@pytest.mark.parametrize("name, i", [p for p in ALL if CASES[p[0]][p[1]].orders >= 1])
def test_every_gradient(name, i):
    case = CASES[name][i]
    arrays = [as_bfloat16(x).array for x in random_arrays(case, "f")]
    weights = [as_bfloat16(w).array.astype("d") for w in weights_for(case, arrays)]
    with renga.using_config("dtype", np.dtype("f")):
        _, exact = gradients(case, [x.astype("d") for x in arrays], weights)
    xs = [as_bfloat16(x) for x in arrays]
    gs = _core.grad([weighted_sum(outputs(case, xs), weights)], xs, [], [])
    for g, expected in zip(gs, exact):
        scale = max(1.0, float(np.abs(expected.array).max(initial=0)))
        np.testing.assert_allclose(g.array, expected.array, 8 * UNIT, 8 * UNIT * scale)


def mixtures(n):
    """Which of n operands are held in bfloat16: one alone, or all but one."""
    alone = {(k,) for k in range(n)}
    others = {(*range(k), *range(k + 1, n)) for k in range(n)}
    return sorted(held for held in alone | others if 0 < len(held) < n)


@pytest.mark.parametrize(
    "name, i", [p for p in DETERMINISTIC if len(CASES[p[0]][p[1]].shapes) > 1]
)
def test_every_operation_beside_float32(name, i):
    """Filters and scales may be computed, and inputs are float32."""
    case = CASES[name][i]
    for held in mixtures(len(case.shapes)):
        check_mixture(case, held)


def check_mixture(case, held):
    arrays = [rounded_to_bfloat16(x) for x in random_arrays(case, "f")]
    xs = [
        as_bfloat16(x) if k in held else _core.Variable(x) for k, x in enumerate(arrays)
    ]
    ys = outputs(case, xs)
    for y, expected in zip(ys, references(case, arrays)):
        assert y.shape == np.shape(expected)
        scale = max(1.0, float(np.abs(expected).max(initial=0)))
        np.testing.assert_allclose(y.array, expected, 4 * UNIT, 4 * UNIT * scale)
    if case.orders == 0:
        return
    weights = [rounded_to_bfloat16(w) for w in weights_for(case, arrays)]
    with renga.using_config("dtype", np.dtype("f")):
        doubles = [x.astype("d") for x in arrays], [w.astype("d") for w in weights]
        _, exact = gradients(case, *doubles)
    for g, expected in zip(_core.grad([weighted_sum(ys, weights)], xs, [], []), exact):
        scale = max(1.0, float(np.abs(expected.array).max(initial=0)))
        np.testing.assert_allclose(g.array, expected.array, 8 * UNIT, 8 * UNIT * scale)


@contextlib.contextmanager
def random_numbers_from(seed):
    before = np.random.get_state()
    np.random.seed(seed)
    yield
    np.random.set_state(before)


class Net(renga.Chain):
    def __init__(self, channels=32):
        super().__init__()
        with self.init_scope():
            self.conv1 = L.Convolution2D(1, channels, 3, pad=1)
            self.norm = L.BatchNormalization(channels)
            self.conv2 = L.Convolution2D(channels, channels, 3, pad=1, nobias=True)
            self.halve = L.Convolution2D(channels, channels, 4, stride=2, pad=1)
            self.out = L.Linear(channels * 4, 10)

    def forward(self, x):
        # Smooth functions: at a kink, rounding alone would change gradients.
        h = F.elu(self.norm(self.conv1(x)))
        h = F.elu(self.halve(F.elu(self.conv2(h))))
        return self.out(F.average_pooling_2d(h, 2))


def test_parameters_statistics_loss_and_gradients_are_float32():
    model = L.Classifier(Net())
    x, t = np.ones((4, 1, 8, 8), "f"), np.zeros(4, "i")
    loss = model(x, t)
    assert loss.array.flags.writeable  # held in float32
    model.cleargrads()
    loss.backward()
    for p in model.params():
        assert p.dtype == np.float32 and p.grad.dtype == np.float32
        assert p.grad.flags.writeable
    assert model.predictor.norm.avg_mean.dtype == np.float32


@pytest.mark.parametrize("kernel, bound", [("direct", 0.06), ("winograd", 0.12)])
def test_gradients_of_a_network(kernel, bound):
    rng = np.random.default_rng(0)
    x, t = rng.standard_normal((16, 1, 8, 8)).astype("f"), rng.integers(0, 10, 16)
    with random_numbers_from(0):
        model = L.Classifier(Net())
    _core.use_convolution_kernel(kernel)
    loss = model(x, t.astype("i"))
    model.cleargrads()
    loss.backward()
    _core.use_convolution_kernel("auto")
    found = {name: p.grad.astype("d") for name, p in model.namedparams()}

    with renga.using_config("dtype", np.dtype("f")):
        for p in model.params():
            p.array = p.array.astype("d")
        exact = model(x.astype("d"), t.astype("i"))
        model.cleargrads()
        exact.backward()
    assert abs(float(loss.array) - float(exact.array)) < 0.02
    for name, p in model.namedparams():
        if name == "/predictor/conv1/b":
            continue  # 0 up to rounding: the normalization removes any bias
        distance = np.linalg.norm(found[name] - p.grad) / np.linalg.norm(p.grad)
        assert distance < bound, name


@pytest.fixture
def nan_in_free_memory():
    """What operations allocate next has NaN, and so has the memory behind it."""
    _core.empty_cache("cpu")
    nan = _core.copy_of(np.full(1 << 23, np.nan, "f"))
    del nan
    yield
    _core.empty_cache("cpu")


@pytest.mark.parametrize("dilate", [(2, 1), (3, 3), (1, 2)])
@pytest.mark.parametrize("channels, groups", [(17, 1), (20, 2), (16, 1)])
def test_weight_gradients_of_dilated_rows(nan_in_free_memory, dilate, channels, groups):
    rng = np.random.default_rng(0)
    x = rounded_to_bfloat16(rng.standard_normal((2, groups * channels, 39, 37), "f"))
    W = rounded_to_bfloat16(rng.standard_normal((groups * 16, channels, 3, 4), "f"))

    def gradient(dtype):
        weights = renga.Variable(W.astype(dtype))
        y = F.convolution_2d(
            x.astype(dtype), weights, pad=(1, 0), dilate=dilate, groups=groups
        )
        (gW,) = renga.grad([y], [weights], [np.ones(y.shape, dtype)])
        return gW.array

    _core.override_bfloat16(True)
    try:
        found = gradient("f")
    finally:
        _core.override_bfloat16(None)
    with renga.using_config("dtype", np.dtype("f")):
        exact = gradient("d")
    np.testing.assert_allclose(found, exact, rtol=0, atol=4 * UNIT * abs(exact).max())


def accuracy_on_digits(dtype):
    train, test = renga.datasets.get_digits(ndim=3)
    with renga.using_config("dtype", dtype), random_numbers_from(0):
        model = L.Classifier(Net())
        optimizer = renga.optimizers.Adam(3e-3).setup(model)
        x, t = (np.stack(part) for part in zip(*train))
        for _ in range(4):
            for batch in np.array_split(np.random.permutation(len(x)), 24):
                optimizer.update(model, x[batch], t[batch])
        images, labels = (np.stack(part) for part in zip(*test))
        with renga.using_config("train", False), renga.no_backprop_mode():
            scores = model.predictor(images).array
    return float(np.mean(scores.argmax(1) == labels))


def test_digits_are_learned_as_well_as_in_float32():
    pytest.importorskip("sklearn")
    exact = accuracy_on_digits(np.dtype("f"))
    assert exact > 0.93
    assert accuracy_on_digits(renga.mixed_bfloat16) > exact - 0.02


def test_prelu_keeps_bfloat16_and_multiplies_by_the_float32_slope():
    rng = np.random.default_rng(0)
    x, slope = as_bfloat16(rng.normal(size=(5, 3, 700))), rng.random(3, "f")
    y = F.prelu(x, slope)
    assert _core.dtype_name(y) == "bfloat16"
    exact = np.where(x.array < 0, x.array * slope[:, None], x.array)
    np.testing.assert_array_equal(y.array, rounded_to_bfloat16(exact))


def test_losses_of_pairs_of_rounded_samples():
    rng = np.random.default_rng(0)
    a, b, c = (as_bfloat16(rng.normal(size=(40, 300))) for _ in range(3))
    x, y, z = (v.array.astype("d") for v in (a, b, c))
    loss = F.triplet(a, b, c)
    gaps = ((x - y) ** 2 - (x - z) ** 2).sum(1) + 0.2
    np.testing.assert_allclose(loss.array, np.maximum(gaps, 0).mean(), rtol=1e-5)
    loss.backward(retain_grad=True)
    exact = 2 * (gaps > 0)[:, None] * (x - y) / 40
    np.testing.assert_allclose(b.grad, -exact, rtol=UNIT, atol=1e-30)
    t = rng.integers(3, size=40)
    hinge = F.hinge(a[:, :3], t)
    signs = np.where(np.arange(3) == t[:, None], -1, 1)
    exact = np.maximum(1 + signs * x[:, :3], 0).sum(1).mean()
    np.testing.assert_allclose(hinge.array, exact, rtol=1e-5)


def test_decorrelated_batch_normalization_has_float32_statistics():
    x = as_bfloat16(np.random.default_rng(0).normal(size=(8, 4, 40)))
    y = F.decorrelated_batch_normalization(x, groups=1, eps=1e-3)
    pixels = x.array.astype("d").swapaxes(0, 1).reshape(4, -1)
    centred = pixels - pixels.mean(1, keepdims=True)
    values, vectors = np.linalg.eigh(centred @ centred.T / 320 + 1e-3 * np.eye(4))
    whitened = vectors @ (vectors.T @ centred / np.sqrt(values)[:, None])
    exact = whitened.reshape(4, 8, 40).swapaxes(0, 1)
    np.testing.assert_allclose(y.array, exact, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("weighted", [False, True])
def test_losses_of_rounded_scores_are_float32(weighted):
    rng = np.random.default_rng(0)
    scores = rounded_to_bfloat16(3 * rng.standard_normal((12, 50), "f"))
    labels = rng.integers(0, 50, 12).astype("i")
    labels[3] = -1
    weights = rng.uniform(0.5, 2, 50).astype("f") if weighted else None
    x = as_bfloat16(scores)
    losses = F.softmax_cross_entropy(x, labels, class_weight=weights, reduce="no")
    of_labels = (np.ones(50) if weights is None else weights)[labels] * (labels >= 0)
    log_p = log_softmax(scores.astype("d"), axis=1)
    np.testing.assert_allclose(
        losses.array, -of_labels * log_p[np.arange(12), labels], rtol=1e-6, atol=1e-6
    )
    (gx,) = renga.grad([F.sum(losses)], [x])
    expected = np.exp(log_p) - np.eye(50)[labels]
    bound = UNIT / 2 * np.abs(expected) + 1e-6
    assert (
        np.abs(gx.array / of_labels.clip(1e-9)[:, None] - expected)[labels >= 0]
        <= bound[labels >= 0]
    ).all()
    assert (gx.array[3] == 0).all()


@pytest.mark.parametrize("rounds_both", [False, True])
def test_mean_squared_error_of_rounded_predictions(rounds_both):
    rng = np.random.default_rng(0)
    a, b = (rounded_to_bfloat16(rng.standard_normal((6, 5), "f")) for _ in range(2))
    x = as_bfloat16(a)
    t = as_bfloat16(b) if rounds_both else renga.Variable(b, requires_grad=True)
    loss = F.mean_squared_error(x, t)
    gradients = renga.grad([loss], [x, t])
    apart = a.astype("d") - b
    np.testing.assert_allclose(loss.array, np.mean(apart**2), rtol=1e-6)
    for found, expected in zip(gradients, (apart / 15, -apart / 15)):
        np.testing.assert_allclose(found.array, expected, rtol=UNIT / 2)


def test_second_derivatives_of_the_loss():
    rng = np.random.default_rng(0)
    scores = rounded_to_bfloat16(rng.standard_normal((6, 5), "f"))
    labels = np.array([0, 1, 2, 3, 4, 0], "i")
    direction = rounded_to_bfloat16(rng.standard_normal((6, 5), "f"))
    x = as_bfloat16(scores)
    loss = F.softmax_cross_entropy(x, labels, normalize=False, reduce="mean")
    (gx,) = renga.grad([loss], [x], enable_double_backprop=True)
    (found,) = renga.grad([F.sum(gx * direction)], [x])
    p = np.exp(log_softmax(scores.astype("d"), axis=1))
    expected = p * (direction - (p * direction).sum(1, keepdims=True)) / 6
    np.testing.assert_allclose(
        found.array, expected, atol=2 * UNIT * np.abs(expected).max()
    )


@pytest.mark.parametrize("held", ["p", "x", "y", "px", "py", "xy", "pxy"])
def test_interpolation_between_operands_of_which_some_are_held_in_bfloat16(held):
    """As of an input and the outputs of links, in a highway or a gated unit."""
    values = dict(zip("pxy", np.random.RandomState(0).normal(size=(3, 5, 9))))
    values = {name: rounded_to_bfloat16(v.astype("f")) for name, v in values.items()}
    p, x, y = values.values()
    operands = {
        name: as_bfloat16(v) if name in held else _core.Variable(v)
        for name, v in values.items()
    }
    z = F.linear_interpolate(*operands.values())
    grads = renga.grad([F.sum(z)], list(operands.values()))
    rtol = UNIT if held == "pxy" else 1e-6
    np.testing.assert_allclose(z.array, p * x + (1 - p) * y, rtol, rtol)
    expected = {"p": x - y, "x": p, "y": 1 - p}
    for name, grad in zip(operands, grads):
        rtol = UNIT if name in held else 1e-6
        np.testing.assert_allclose(grad.array, expected[name], rtol, rtol, True, name)


@pytest.mark.parametrize("shape", [(), (1, 1), (0, 3), (3, 0)])
@pytest.mark.parametrize("held", [0, 1])
def test_differences_of_few_numbers_beside_float32(shape, held):
    values = np.random.RandomState(0).normal(size=(2, *shape)).astype("f")
    arrays = [rounded_to_bfloat16(np.asarray(value)) for value in values]
    xs = [
        as_bfloat16(a) if k == held else _core.Variable(a) for k, a in enumerate(arrays)
    ]
    gx, gy = renga.grad([F.sum(F.squared_difference(*xs))], xs)
    expected = 2 * (arrays[0] - arrays[1])
    np.testing.assert_allclose(gx.array, expected, UNIT)
    np.testing.assert_allclose(gy.array, -expected, UNIT)


@pytest.mark.parametrize("make", [lambda: L.Highway(4), lambda: L.StatefulMGU(4, 4)])
def test_links_that_interpolate_from_a_float32_input(make):
    x = np.random.RandomState(0).normal(size=(3, 4)).astype("f")
    link = make()
    y = link(x)
    link.cleargrads()
    F.sum(y).backward()
    assert all(np.isfinite(param.grad).all() for param in link.params())
    with renga.using_config("dtype", np.float32):
        exact = make()
    exact.copyparams(link)
    np.testing.assert_allclose(y.array, exact(x).array, 4 * UNIT, 4 * UNIT)
