"""Gradients of leaves that backward passes leave for later, as pipelines do."""

import numpy as np
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga import _core


class Layers(renga.Chain):
    """Weights that are used once, among them a bias and those of a normalization."""

    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.conv = L.Convolution2D(3, 16, 3, pad=1)
            self.bn = L.BatchNormalization(16)
            self.out = L.Linear(16 * 4 * 4, 5)

    def forward(self, x):
        return self.out(F.relu(self.bn(self.conv(x))))


def loss(y):
    return F.sum(F.square(y))


def images(seed):
    x = np.random.RandomState(seed).normal(size=(4, 3, 4, 4)).astype("f")
    return renga.Variable(x)


@pytest.fixture
def deferred():
    """What this thread's passes leave for later."""
    found = _core.PostponedGradients()
    _core.postpone_gradients(found)
    yield found
    _core.postpone_gradients(None)


def gradients(link):
    return {path: p.grad for path, p in link.namedparams()}


def assert_equal(found, expected):
    for path, gradient in expected.items():
        np.testing.assert_array_equal(found[path], gradient, err_msg=path)


def test_passes_and_what_they_left_have_the_bits_of_whole_passes(deferred):
    np.random.seed(0)
    model = Layers()
    whole = model.copy("copy")
    model.cleargrads()
    xs = [images(i) for i in range(3)]
    for x in xs:
        deferred.set_urgent([x])
        loss(model(x)).backward()
        assert x.grad is not None  # which needs the weights, not their gradients
    assert model.conv.W.grad is None and model.out.b.grad is None
    assert len(deferred) > 0
    deferred.compute()
    assert len(deferred) == 0
    _core.postpone_gradients(None)
    whole.cleargrads()
    others = [images(i) for i in range(3)]
    for x in others:
        loss(whole(x)).backward()
    assert_equal(gradients(model), gradients(whole))
    for x, other in zip(xs, others):
        np.testing.assert_array_equal(x.grad, other.grad)


def test_urgent_leaves_and_those_that_are_used_twice_do_not_wait(deferred):
    x, w = (renga.Variable(np.full((2, 2), value, "f")) for value in (2, 3))
    v = renga.Variable(np.full((2, 2), 5, "f"))
    deferred.set_urgent([x])
    F.sum(F.matmul(x, w) + F.matmul(v, v)).backward()
    np.testing.assert_array_equal(x.grad, np.full((2, 2), 6))
    np.testing.assert_array_equal(v.grad, np.full((2, 2), 20))
    assert w.grad is None and len(deferred) == 1
    deferred.compute()
    np.testing.assert_array_equal(w.grad, np.full((2, 2), 4))


def test_a_leaf_adds_its_terms_in_their_order(deferred):
    """A pass that computes a leaf's gradient at once first adds what waits."""
    w = renga.Parameter(np.zeros(1, "f"))
    terms = [1e8, 1.0, -1e8]  # 1e8 + 1 - 1e8 = 0 in float32
    for term in terms[:2]:
        (w * renga.as_variable(np.array([term], "f"))).backward()
    y = w * np.float32(terms[2] / 2) + w * np.float32(terms[2] / 2)
    y.backward()
    assert len(deferred) == 0
    np.testing.assert_array_equal(w.grad, [0])


@pytest.mark.parametrize("kind", ["recorded", "hook", "grad"])
def test_passes_that_leave_nothing(deferred, kind):
    x, w = (renga.Variable(np.full((2, 2), value, "f")) for value in (2, 3))
    y = F.sum(F.matmul(x, w))
    if kind == "hook":
        ready = []
        handle = _core.add_gradient_ready_hook(ready.append)
        y.backward()
        _core.remove_gradient_ready_hook(handle)
        assert len(ready) == 2
    elif kind == "recorded":
        y.backward(enable_double_backprop=True)
    else:
        (gw,) = renga.grad([y], [w])
        np.testing.assert_array_equal(gw.array, np.full((2, 2), 4))
        return
    assert len(deferred) == 0
    np.testing.assert_array_equal(w.grad, np.full((2, 2), 4))


def test_the_loss_scale_of_the_pass_is_kept(deferred):
    w = renga.Parameter(np.full(1, 3, "f"))
    y = w * renga.as_variable(np.array([2], "f"))
    y.backward(loss_scale=8.0)
    deferred.compute()
    np.testing.assert_array_equal(w.grad, [16])
    assert w.loss_scale == 8.0


def test_functions_of_python_are_called_once(deferred):
    class Product(renga.FunctionNode):
        calls = 0

        def forward(self, inputs):
            self.retain_inputs((0, 1))
            return (inputs[0] * inputs[1],)

        def backward(self, indexes, grad_outputs):
            type(self).calls += 1
            a, b = self.get_retained_inputs()
            return grad_outputs[0] * b, grad_outputs[0] * a

    x, w = (renga.Variable(np.full(1, value, "f")) for value in (2, 3))
    Product().apply((x, w))[0].backward()
    assert Product.calls == 1 and len(deferred) == 0
    np.testing.assert_array_equal(w.grad, [2])
