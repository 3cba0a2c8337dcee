"""Losses against float64 formulas."""

import numpy
import pytest
from scipy import special

import renga
import renga.functions as F
from renga import gradient_check
from renga.utils.type_check import InvalidType

rng = numpy.random.default_rng(0)


@pytest.mark.parametrize("dtype", ["e", "f", "d"])
def test_mean_squared_error(dtype):
    a, b = (rng.normal(size=(4, 3)).astype(dtype) for _ in range(2))
    loss = F.mean_squared_error(a, renga.Variable(b))
    assert loss.dtype == dtype
    expected = ((a.astype("d") - b) ** 2).mean()
    assert float(loss.array) == pytest.approx(expected, rel=5e-3)


def test_mean_squared_error_of_large_halves_does_not_overflow():
    a = numpy.zeros((100, 10), "e")
    assert F.mean_squared_error(a, a + 200).array == 40000


def test_mean_squared_error_gradients_and_faults():
    a, b, ga, gb = (rng.normal(size=(2, 3)) for _ in range(4))
    start = numpy.array(1.5)
    gradient_check.check_backward(F.mean_squared_error, (a, b), start)
    gradient_check.check_double_backward(F.mean_squared_error, (a, b), start, (ga, gb))
    for wrong in (b[0], b.astype("f"), b.astype("i")):
        with pytest.raises(InvalidType):
            F.mean_squared_error(a, wrong)
    with pytest.raises(InvalidType):
        F.mean_squared_error(a.astype("i"), b.astype("i"))


@pytest.mark.parametrize("name", ["gaussian_kl_divergence", "gaussian_nll"])
def test_shapes_that_do_not_fit_are_refused_by_the_name_of_the_loss(name):
    a, b = numpy.ones((2, 3), "f"), numpy.ones((2, 4), "f")
    given = (a, b) if name == "gaussian_kl_divergence" else (a, b, b)
    listed = " and ".join(str(x.shape) for x in given)
    with pytest.raises(InvalidType) as raised:
        getattr(F, name)(*given)
    assert str(raised.value) == f"{name}: expected shapes that broadcast, got {listed}"


def binary(x, t):
    p = special.expit(x.astype("d"))
    return numpy.where(t == -1, 0, -numpy.log(numpy.where(t == 1, p, 1 - p)))


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("low", [0, -1])
def test_sigmoid_cross_entropy(normalize, low):
    x = rng.normal(size=(5, 3)) * 3
    t = rng.integers(low, 2, size=(5, 3))
    losses = binary(x, t)
    count = (t != -1).sum() if normalize else 5

    def loss(x, reduce="mean"):
        return F.sigmoid_cross_entropy(x, t, normalize, reduce)

    numpy.testing.assert_allclose(loss(x, "no").array, losses, 1e-9)
    assert float(loss(x).array) == pytest.approx(losses.sum() / count)
    ggx = rng.normal(size=x.shape)
    gradient_check.check_backward(loss, x, numpy.array(2.0))
    gradient_check.check_double_backward(loss, x, numpy.array(2.0), ggx)


def test_sigmoid_cross_entropy_far_out():
    x = numpy.array([[-200.0, 200, -200, 200]])
    t = numpy.array([[0, 0, 1, 1]])
    y = F.sigmoid_cross_entropy(renga.Variable(x), renga.Variable(t), reduce="no")
    numpy.testing.assert_allclose(y.array, [[0, 200, 200, 0]], atol=1e-80)
    nothing = F.sigmoid_cross_entropy(x, t * 0 - 1)
    assert nothing.array == 0


def test_sigmoid_cross_entropy_faults():
    x, t = numpy.zeros((2, 3)), numpy.zeros((2, 3), "i")
    with pytest.raises(ValueError):
        F.sigmoid_cross_entropy(x, t, reduce="sum")
    for wrong in ((x, t[0]), (x, x), (t, t)):
        with pytest.raises(InvalidType):
            F.sigmoid_cross_entropy(*wrong)


def cross_entropies(x, t, weight=None, ignore=-1):
    log_p = special.log_softmax(x, axis=1)
    weight = numpy.ones(x.shape[1]) if weight is None else weight
    losses = numpy.zeros(t.shape)
    for i in numpy.ndindex(*t.shape):
        if t[i] != ignore:
            losses[i] = -weight[t[i]] * log_p[(i[0], t[i], *i[1:])]
    return losses


@pytest.mark.parametrize("extra", [(), (2,)])
@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("weight", [None, "f", "d"])
def test_softmax_cross_entropy(extra, normalize, weight):
    x = rng.normal(size=(6, 4, *extra))
    t = rng.integers(-1, 4, size=(6, *extra))
    if weight is not None:
        weight = rng.uniform(0.5, 2, size=4).astype(weight)
    losses = cross_entropies(x, t, weight)
    count = (t != -1).sum() if normalize else 6

    def loss(x, reduce="mean"):
        return F.softmax_cross_entropy(
            x, t, normalize=normalize, class_weight=weight, reduce=reduce
        )

    numpy.testing.assert_allclose(loss(x, "no").array, losses)
    assert float(loss(x).array) == pytest.approx(losses.sum() / count)
    variable = F.softmax_cross_entropy(x, renga.Variable(t), class_weight=weight)
    assert float(variable.array) == pytest.approx(losses.sum() / (t != -1).sum())
    ggx = rng.normal(size=x.shape)
    gradient_check.check_backward(loss, x, numpy.array(2.0))
    gradient_check.check_double_backward(loss, x, numpy.array(2.0), ggx)


def test_softmax_cross_entropy_ignores_another_label():
    x, t = rng.normal(size=(6, 4)), rng.integers(0, 4, size=6)
    t[0] = 2
    losses = cross_entropies(x, t, ignore=2)
    found = F.softmax_cross_entropy(x, t, ignore_label=2, reduce="no")
    numpy.testing.assert_allclose(found.array, losses)


@pytest.mark.parametrize("dtype, tolerance", [("d", 1e-13), ("f", 2e-6), ("e", 2e-3)])
@pytest.mark.parametrize("shape", [(5, 1003), (5, 1003, 3), (70, 90, 3)])
def test_softmax_cross_entropy_of_many_classes(dtype, tolerance, shape):
    samples, classes, *extra = shape
    x = rng.normal(0, 3, size=shape).astype(dtype)
    x[0, 7] = 60  # certain of one class
    t = rng.integers(0, classes, size=(samples, *extra))
    t[1] = -1
    variable = renga.Variable(x)
    losses = F.softmax_cross_entropy(variable, t, reduce="no")
    expected = cross_entropies(x.astype("d"), t)
    numpy.testing.assert_allclose(losses.array, expected, tolerance, tolerance)
    losses.grad = gy = rng.uniform(-1, 1, size=t.shape).astype(dtype)
    losses.backward()
    onehot = numpy.moveaxis(numpy.eye(classes)[t], -1, 1)
    slope = special.softmax(x.astype("d"), axis=1) - onehot
    gx = slope * (gy * (t != -1))[:, None]
    numpy.testing.assert_allclose(variable.grad, gx, 10 * tolerance, tolerance)


def test_softmax_cross_entropy_of_no_classes():
    x, t = renga.Variable(numpy.empty((2, 0), "f")), numpy.array([-1, -1])
    loss = F.softmax_cross_entropy(x, t)
    loss.backward()
    assert loss.array == 0 and x.grad.shape == (2, 0)


@pytest.mark.parametrize("kind", ["cross-entropy", "kl-divergence"])
@pytest.mark.parametrize("weighted", [False, True])
def test_soft_targets(kind, weighted):
    x = rng.normal(size=(3, 4, 2))
    t = special.softmax(rng.normal(size=x.shape), axis=1)
    t[0] = numpy.eye(4)[1][:, None]  # exact zeros and ones
    # Neither weights nor normalize have an effect, as in Chainer.
    weight = rng.uniform(0.5, 2, size=4) if weighted else None
    losses = -(t * special.log_softmax(x, axis=1)).sum(1)
    if kind == "kl-divergence":
        losses += special.xlogy(t, t).sum(1)

    def loss(x, reduce="mean"):
        return F.softmax_cross_entropy(
            x, t, class_weight=weight, reduce=reduce, soft_target_loss=kind
        )

    numpy.testing.assert_allclose(loss(x, "no").array, losses)
    assert float(loss(x).array) == pytest.approx(losses.mean())
    total = F.softmax_cross_entropy(
        x, t, normalize=False, class_weight=weight, soft_target_loss=kind
    )
    assert float(total.array) == pytest.approx(losses.mean())
    ggx = rng.normal(size=x.shape)
    gradient_check.check_double_backward(loss, x, numpy.array(2.0), ggx)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"reduce": "sum"}, ValueError),
        ({"class_weight": numpy.ones((1, 3))}, ValueError),
        ({"class_weight": renga.Variable(numpy.ones(3))}, ValueError),
        ({"class_weight": numpy.ones(3, "i")}, ValueError),
        ({"class_weight": numpy.ones(2)}, InvalidType),
        ({"t": numpy.array([0, 1, 2])}, InvalidType),
        ({"t": numpy.array([0.0, 1.0])}, InvalidType),
        ({"t": numpy.ones((2, 3)), "soft_target_loss": "l2"}, ValueError),
    ],
)
def test_softmax_cross_entropy_faults(options, error):
    given = {"x": numpy.zeros((2, 3)), "t": numpy.array([0, 1]), **options}
    with pytest.raises(error):
        F.softmax_cross_entropy(**given)
