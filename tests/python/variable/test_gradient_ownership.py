"""After backward() every leaf's gradient owns its memory.

Operations may return views, or one array for several inputs. Optimizers, hooks and
loss scaling change gradients in place, so each test does that and checks the others.
"""

import numpy as np
import pytest

import renga
import renga.functions as F
from renga import optimizer_hooks

SHAPE = (2, 3)


def parameter(value=None):
    values = np.arange(1.0, 7).reshape(SHAPE) if value is None else value
    return renga.Parameter(np.array(values, np.float32))


class Model(renga.Chain):
    def __init__(self, **params):
        super().__init__()
        with self.init_scope():
            for name, param in params.items():
                setattr(self, name, param)


# Each gives a scalar whose gradient with respect to p and to q is one everywhere.
LOSSES = {
    "sum": lambda p, q: F.sum(p) + F.sum(q),
    "add": lambda p, q: F.sum(p + q),
    "reshape": lambda p, q: F.sum(F.reshape(p, (3, 2)) + F.reshape(q, (3, 2))),
    "transpose": lambda p, q: F.sum(p.T + q.T),
    "concat": lambda p, q: F.sum(F.concat([p, q], axis=0)),
    "stack": lambda p, q: F.sum(F.stack([p, q])),
    "cast": lambda p, q: F.sum(F.cast(p, "f") + F.cast(q, "f")),
    "identity": lambda p, q: F.sum(sum(F.identity(p, q))),
    "broadcast": lambda p, q: F.sum(F.broadcast_to(p + q, SHAPE)),
    "squeeze": lambda p, q: F.sum(F.squeeze(F.expand_dims(p, 0) + q)),
    "split": lambda p, q: F.sum(sum(F.split_axis(p, 3, 1)) + F.sum(q, 1)[:, None]),
    "get_item": lambda p, q: F.sum(p[:, :] + q[...]),
    "flip": lambda p, q: F.sum(F.flip(p, 0) + F.flip(q, 0)),
    "separate": lambda p, q: F.sum(sum(F.separate(p)) + sum(F.separate(q))),
    "hstack": lambda p, q: F.sum(F.hstack([p, q])),
    "moveaxis": lambda p, q: F.sum(F.moveaxis(p, 0, 1) + F.swapaxes(q, 0, 1)),
}
losses = pytest.mark.parametrize("name", LOSSES)


def gradients(name):
    p, q = parameter(), parameter()
    p.cleargrad(), q.cleargrad()
    LOSSES[name](p, q).backward()
    return p, q


@losses
def test_writes_to_one_gradient_change_nothing_else(name):
    p, q = gradients(name)
    for leaf in (p, q):
        assert leaf.grad.flags.writeable
        leaf.grad[0, 1] += 5
    expected = [[1, 6, 1], [1, 1, 1]]
    np.testing.assert_array_equal(p.grad, expected)
    np.testing.assert_array_equal(q.grad, expected)


# The result of each hook for a gradient of ones at p; the global norm is that of two
# parameters.
HOOKS = {
    "WeightDecay": (lambda: optimizer_hooks.WeightDecay(0.5), lambda p: 1 + 0.5 * p),
    "Lasso": (lambda: optimizer_hooks.Lasso(0.5), lambda p: 1 + 0.5 * np.sign(p)),
    "GradientClipping": (
        lambda: optimizer_hooks.GradientClipping(1.0),
        lambda p: np.ones(SHAPE) / np.sqrt(12),
    ),
    "GradientHardClipping": (
        lambda: optimizer_hooks.GradientHardClipping(-0.25, 0.25),
        lambda p: np.full(SHAPE, 0.25),
    ),
    "GradientLARS": (
        lambda: optimizer_hooks.GradientLARS(0.01, 0.5, 1e-9),
        lambda p: (
            (1 + 0.5 * p)
            * np.linalg.norm(p)
            / (np.sqrt(6) + 0.5 * np.linalg.norm(p) + 1e-9)
        ),
    ),
}


@losses
@pytest.mark.parametrize("hook", HOOKS)
@pytest.mark.parametrize("one_pass", [True, False])
def test_hooks_change_each_element_once(name, hook, one_pass):
    make, formula = HOOKS[hook]
    model = Model(p=parameter(), q=parameter())
    optimizer = renga.optimizers.SGD(lr=0.1).setup(model)
    optimizer.add_hook(make())
    if not one_pass:
        # With another hook after it, the decay is not fused with the update.
        optimizer.add_hook(lambda optimizer: None, "afterwards")
    before = model.p.array.astype(np.float64)
    optimizer.update(LOSSES[name], model.p, model.q)
    expected = before - 0.1 * formula(before)
    np.testing.assert_allclose(model.p.array, expected, rtol=1e-6)
    np.testing.assert_allclose(model.q.array, expected, rtol=1e-6)


@losses
def test_gradients_are_divided_by_the_loss_scale_once(name):
    model = Model(p=parameter(), q=parameter())
    optimizer = renga.optimizers.SGD(lr=0.1).setup(model)
    optimizer.loss_scaling(scale=8.0)
    before = model.p.array.copy()
    optimizer.update(LOSSES[name], model.p, model.q)
    np.testing.assert_allclose(model.p.array, before - 0.1, rtol=1e-6)
    np.testing.assert_allclose(model.q.array, before - 0.1, rtol=1e-6)


VIEWS = [lambda p: p + 0, lambda p: p.reshape(6), lambda p: p.T]


@pytest.mark.parametrize("use", VIEWS)
def test_hooks_do_not_change_given_and_retained_gradients(use):
    model = Model(p=parameter())
    optimizer = renga.optimizers.SGD(lr=0.1).setup(model)
    optimizer.add_hook(optimizer_hooks.WeightDecay(0.5))
    model.cleargrads()
    y = use(model.p)
    given = np.ones(y.shape, np.float32)
    y.grad = given
    y.backward(retain_grad=True, loss_scale=4.0)
    optimizer.update()
    np.testing.assert_array_equal(given, 1)
    np.testing.assert_array_equal(y.grad, 1)


def test_gradients_stored_by_grad_share_no_memory():
    p, q = parameter(), parameter()
    p.cleargrad(), q.cleargrad()
    gy = renga.Variable(np.ones(SHAPE, "f"))
    found = renga.grad([p + q], [p, q], [gy], set_grad=True)
    p.grad[...] = 7
    np.testing.assert_array_equal(q.grad, 1)
    assert found[0] is p.grad_var and found[1] is q.grad_var
    np.testing.assert_array_equal(gy.array, 1)


def test_recorded_gradients_share_no_memory_and_are_differentiable():
    p, q = parameter(), parameter()
    p.cleargrad(), q.cleargrad()
    gy = renga.Variable(np.full(SHAPE, 2, np.float32))
    y = p + q
    y.grad_var = gy
    y.backward(enable_double_backprop=True)
    p.grad[0, 0] = 5
    assert q.grad[0, 0] == 2 and gy.array[0, 0] == 2
    F.sum(q.grad_var * q.grad_var).backward()
    np.testing.assert_array_equal(gy.grad, np.full(SHAPE, 4))


def test_functions_in_python_may_return_shared_arrays():
    kept = np.ones(SHAPE, np.float32)

    class Same(renga.FunctionNode):
        def forward(self, inputs):
            return (inputs[0] + inputs[1],)

        def backward(self, indexes, gys):
            return renga.Variable(kept), renga.Variable(np.broadcast_to(kept[0], SHAPE))

    p, q = parameter(), parameter()
    p.cleargrad(), q.cleargrad()
    F.sum(Same().apply((p, q))[0]).backward()
    p.grad[...] = 3
    q.grad[0, 0] = 4
    np.testing.assert_array_equal(kept, 1)
    np.testing.assert_array_equal(q.grad, [[4, 1, 1], [1, 1, 1]])


def test_gradients_of_a_wrong_shape_are_refused():
    p = parameter()
    with pytest.raises(ValueError, match="shape"):
        renga.Variable(p.array, grad=np.ones((3, 2), "f"))
    with pytest.raises(TypeError, match="dtype"):
        renga.Variable(p.array, grad=np.ones(SHAPE, "d"))
    y = p * 2
    with pytest.raises(ValueError, match=r"shape \(2, 3\), got \(3,\)"):
        renga.grad([y], [p], [renga.Variable(np.ones(3, "f"))])
    y.grad = np.ones(SHAPE, "f")
    y.array = np.ones((4, 3), "f")
    with pytest.raises(ValueError, match="shape"):
        y.backward()
    p.grad = np.ones(SHAPE, "f")
    p.array = np.ones((3,), "f")
    with pytest.raises(ValueError, match="shape"):
        F.sum(p * 2).backward()
    other = renga.Variable(np.ones(3, "f"), grad=np.ones(3, "f"))
    with pytest.raises(ValueError, match="shape"):
        parameter().addgrad(other)
