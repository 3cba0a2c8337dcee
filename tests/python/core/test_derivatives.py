"""Derivatives along vectors and of second order: closed forms, differences."""

import numpy as np
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga.utils.type_check import InvalidType

rng = np.random.RandomState(0)
A, B = rng.uniform(0.5, 1.5, (3, 4)), rng.uniform(0.5, 1.5, 4)
VA, VB = rng.uniform(-1, 1, A.shape), rng.uniform(-1, 1, B.shape)


def network(a, b):
    h = F.tanh(a * b) / F.exp(F.sum(b))
    return F.softmax(h), F.matmul(h, b) ** 2


def loss(a, b):
    y, z = network(a, b)
    return F.sum(F.log(y)[:, 1] * z)


def difference(function, xs, vs, step=1e-5):
    """The derivative of what returns a list of arrays."""
    ahead, behind = (
        function(*[x + sign * step * v for x, v in zip(xs, vs)]) for sign in (1, -1)
    )
    return [(p - m) / (2 * step) for p, m in zip(ahead, behind)]


def gradients(a, b):
    xs = [renga.Variable(a), renga.Variable(b)]
    return [g.array for g in renga.grad([loss(*xs)], xs)]


@pytest.mark.parametrize("kind", [lambda x: x, renga.Variable])
def test_jvp_of_several_inputs_and_outputs(kind):
    ys, ts = renga.jvp(network, (kind(A), kind(B)), (kind(VA), VB))
    expected = network(renga.Variable(A), renga.Variable(B))
    for y, want in zip(ys, expected):
        np.testing.assert_array_equal(y.array, want.array)
    arrays = lambda *xs: [y.array for y in network(*map(renga.Variable, xs))]  # noqa: E731
    for t, want in zip(ts, difference(arrays, (A, B), (VA, VB))):
        np.testing.assert_allclose(t.array, want, rtol=1e-6, atol=1e-8)


def test_jvp_of_what_is_linear_or_constant():
    y, t = renga.jvp(lambda a, b: F.matmul(a, b), (A, B), (VA, VB))
    np.testing.assert_allclose(t.array, VA @ B + A @ VB)
    y, t = renga.jvp(lambda a: renga.Variable(B), (A,), (VA,))
    np.testing.assert_array_equal(t.array, np.zeros(4))
    y, t = renga.jvp(lambda a: a, (A,), (VA,))
    np.testing.assert_array_equal(t.array, VA)


def test_hvp():
    M = rng.uniform(-1, 1, (4, 4))
    form = lambda b: F.matmul(b, F.matmul(M, b))  # noqa: E731
    (product,) = renga.hvp(form, [B], [VB])
    np.testing.assert_allclose(product.array, (M + M.T) @ VB)
    found = renga.hvp(loss, (A, B), (VA, VB))
    for product, want in zip(found, difference(gradients, (A, B), (VA, VB))):
        np.testing.assert_allclose(product.array, want, rtol=1e-5, atol=1e-7)


def test_hessian():
    M = rng.uniform(-1, 1, (3, 4))
    form = lambda a, b: F.matmul(a, F.matmul(M, b)) + F.sum(a**2)  # noqa: E731
    (aa, ab), (ba, bb) = renga.hessian(form, (A[:, 0], B))
    np.testing.assert_allclose(aa.array, 2 * np.eye(3))
    np.testing.assert_allclose(ab.array, M)
    np.testing.assert_allclose(ba.array, M.T)
    np.testing.assert_array_equal(bb.array, np.zeros((4, 4)))
    blocks = renga.hessian(loss, (A, B))
    products = renga.hvp(loss, (A, B), (VA, VB))
    for row, x, product in zip(blocks, (A, B), products):
        assert [block.shape for block in row] == [x.shape + A.shape, x.shape + B.shape]
        total = np.tensordot(row[0].array, VA, 2) + np.tensordot(row[1].array, VB, 1)
        np.testing.assert_allclose(total, product.array, rtol=1e-9, atol=1e-12)


class Net(renga.Chain):
    def __init__(self):
        super().__init__()
        with self.init_scope(), renga.using_config("dtype", "d"):
            self.conv = L.Convolution2D(1, 2, 3)
            self.out = L.Linear(8, 3)

    def forward(self, x):
        return self.out(F.tanh(self.conv(x)))


def test_parameters_of_a_model():
    net, images = Net(), rng.uniform(-1, 1, (5, 1, 4, 4))
    labels = np.array([0, 1, 2, 0, 1])
    params = list(net.params())
    vectors = [rng.uniform(-1, 1, p.shape) for p in params]
    before = [p.array.copy() for p in params]

    def act(*_):
        return F.softmax_cross_entropy(net(images), labels)

    def at(function):
        def run(*arrays):
            for p, array in zip(params, arrays):
                p.array[...] = array
            return function()

        return run

    def values():
        return [act().array]

    def gradients():
        return [g.array for g in renga.grad([act()], params)]

    _, t = renga.jvp(act, params, vectors)
    (want,) = difference(at(values), before, vectors)
    at(values)(*before)
    np.testing.assert_allclose(t.array, want, rtol=1e-6)
    products = renga.hvp(act, params, vectors)
    wanted = difference(at(gradients), before, vectors)
    at(values)(*before)
    for product, want in zip(products, wanted):
        np.testing.assert_allclose(product.array, want, rtol=1e-5, atol=1e-8)
    block = renga.hessian(act, [net.out.b])[0][0].array
    # The block of softmax cross-entropy is the mean of diag(p) - p p^T.
    p = F.softmax(net(images)).array
    want = np.diag(p.mean(0)) - p.T @ p / 5
    np.testing.assert_allclose(block, want, rtol=1e-7, atol=1e-12)


def test_gradients_of_samples():
    link = L.Linear(4, 2, initialW=rng.uniform(-1, 1, (2, 4)))
    x, t = rng.uniform(-1, 1, (2, 5, 4)).astype("f")
    t = t[:, :2]
    gW, gb = renga.per_sample_grad(
        lambda x, t: F.sum((link(x) - t) ** 2), link.params(), x, renga.Variable(t)
    )
    gy = 2 * (x @ link.W.array.T - t)
    np.testing.assert_allclose(gb.array, gy, rtol=1e-5)
    np.testing.assert_allclose(gW.array, gy[:, :, None] * x[:, None], rtol=1e-5)


def test_gradients_of_samples_add_up_to_that_of_the_batch():
    net, images = Net(), rng.uniform(-1, 1, (5, 1, 4, 4))
    labels, unused = np.array([0, 1, 2, 0, 1]), renga.Parameter(np.ones(2))

    def act(x, t):
        return F.softmax_cross_entropy(net(x), t)

    *found, none = renga.per_sample_grad(act, [*net.params(), unused], images, labels)
    of_batch = renga.grad([act(images, labels)], list(net.params()))
    for gs, g in zip(found, of_batch):
        assert gs.shape == (5, *g.shape)
        np.testing.assert_allclose(gs.array.mean(0), g.array, rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(none.array, np.zeros((5, 2)))
    with renga.no_backprop_mode():
        again = renga.per_sample_grad(act, net.params(), images, labels)
    np.testing.assert_array_equal(again[0].array, found[0].array)


class Opaque(renga.FunctionNode):
    """Its backward computes with arrays."""

    def forward(self, inputs):
        self.retain_inputs((0,))
        return (inputs[0] ** 2,)

    def backward(self, indexes, grad_outputs):
        (x,) = self.get_retained_inputs()
        return (renga.Variable(2 * x.array * grad_outputs[0].array),)


class Old(renga.Function):
    def forward(self, inputs):
        return (inputs[0] ** 2,)

    def backward(self, inputs, grad_outputs):
        return (2 * inputs[0] * grad_outputs[0],)


def opaque(x):
    return F.sum(F.exp(Opaque().apply((F.exp(x),))[0]) + x**2)


@pytest.mark.parametrize("name", ["jvp", "hvp", "hessian"])
def test_functions_that_cannot_be_differentiated_twice(name):
    function = getattr(renga, name)
    vectors = [] if name == "hessian" else [[VB]]
    with pytest.raises(RuntimeError, match=f"{name}: expected .* twice, got Opaque"):
        function(opaque, [B], *vectors)
    with pytest.raises(RuntimeError, match='old style Function "Old"'):
        function(lambda x: F.sum(Old()(x)), [B], *vectors)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: renga.jvp(F.exp, B, B), TypeError, "a tuple or list of inputs, got"),
        (lambda: renga.hessian(F.sum, None), TypeError, "a tuple or list of inputs"),
        (lambda: renga.jvp(F.exp, [B], []), ValueError, "jvp: expected 1 vectors, got"),
        (lambda: renga.jvp(F.exp, [B], [A]), InvalidType, r"shapes \[\(4,\)\], got"),
        (lambda: renga.jvp(F.exp, [[1, 2]], [[1, 2]]), InvalidType, "inputs of floats"),
        (lambda: renga.jvp(lambda x: B, [B], [B]), TypeError, "Variables, got ndarray"),
        (
            lambda: renga.hvp(F.exp, [B], [B]),
            ValueError,
            r"one element, got \[\(4,\)\]",
        ),
        (lambda: renga.hessian(F.exp, [B]), ValueError, "hessian: expected a loss of"),
        (
            lambda: renga.per_sample_grad(F.sum, [renga.Parameter(B)], A, B),
            InvalidType,
            r"as many samples, one or more, got shapes \[\(3, 4\), \(4,\)\]",
        ),
        (
            lambda: renga.per_sample_grad(F.sum, [renga.Parameter(B)]),
            InvalidType,
            r"got shapes \[\]",
        ),
        (
            lambda: renga.hvp(F.sum, [L.Linear(None, 2).W], [B]),
            InvalidType,
            "hvp: expected inputs of floats that require gradients",
        ),
    ],
)
def test_refused_arguments(call, error, message):
    with pytest.raises(error, match=message):
        call()
