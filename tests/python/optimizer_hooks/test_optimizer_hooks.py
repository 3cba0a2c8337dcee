"""Hooks on gradients, against NumPy, with and without a loss scale."""

import math

import numpy
import pytest

import renga.functions as F
from renga import Link, Parameter, optimizer_hooks, optimizers

W = numpy.array([[1.0, -2.0], [0.5, 0.0]])
B = numpy.array([3.0, -4.0])
GW = numpy.array([[0.1, 0.2], [-0.3, 0.4]])
GB = numpy.array([-0.5, 0.6])
NORM = numpy.sqrt((GW**2).sum() + (GB**2).sum())


def lars(x, g, threshold=1e-2, weight_decay=0.0, eps=1e-9):
    size = numpy.linalg.norm(x)
    rate = size / (eps + numpy.linalg.norm(g) + weight_decay * size)
    return (g + weight_decay * x) * (rate if size > threshold else 1)


hooks = optimizer_hooks
CASES = [
    (hooks.WeightDecay(0.5), lambda x, g: g + 0.5 * x),
    (hooks.Lasso(0.5), lambda x, g: g + 0.5 * numpy.sign(x)),
    (hooks.GradientHardClipping(-0.25, 0.15), lambda x, g: numpy.clip(g, -0.25, 0.15)),
    (hooks.GradientClipping(0.5), lambda x, g: g * (0.5 / NORM)),
    (hooks.GradientClipping(10.0), lambda x, g: g),
    (hooks.GradientLARS(), lars),
    (
        hooks.GradientLARS(2.5, weight_decay=0.3),
        lambda x, g: lars(x, g, 2.5, 0.3),
    ),
]
cases = pytest.mark.parametrize(
    ("hook", "formula"), CASES, ids=[f"{c[0].name}-{i}" for i, c in enumerate(CASES)]
)


def make_model(dtype):
    model = Link()
    with model.init_scope():
        model.W = Parameter(W.astype(dtype))
        model.b = Parameter(B.astype(dtype))
        model.lazy = Parameter(1.0)
    model.W.grad = GW.astype(dtype)
    model.b.grad = GB.astype(dtype)
    return model


@cases
@pytest.mark.parametrize(
    ("dtype", "tolerance"), [("f8", 1e-14), ("f4", 1e-6), ("f2", 2e-3)]
)
@pytest.mark.parametrize("scale", [None, 128.0])
def test_gradients_at_the_update(hook, formula, dtype, tolerance, scale):
    model = make_model(dtype)
    model.cleargrads()
    loss = F.sum(model.W * GW.astype(dtype)) + F.sum(model.b * GB.astype(dtype))
    loss.backward(loss_scale=scale)
    optimizer = optimizers.SGD(lr=0.0).setup(model)
    optimizer.add_hook(hook)
    optimizer.update()
    for param, x, g in ((model.W, W, GW), (model.b, B, GB)):
        numpy.testing.assert_allclose(
            param.grad, formula(x, g), rtol=tolerance, atol=tolerance
        )
        numpy.testing.assert_array_equal(param.array, x.astype(dtype))


@cases
def test_attributes(hook, formula):
    assert hook.name == type(hook).__name__
    assert hook.timing == "pre"
    each = getattr(hook, "call_for_each_param", False)
    assert each == (hook.name != "GradientClipping")


@pytest.mark.parametrize("hook", [case[0] for case in CASES if case[0].name[0] != "G"])
def test_on_one_parameter_without_a_gradient(hook):
    param = Parameter(1.0, (2,))
    param.cleargrad()
    hook(None, param)
    assert param.grad is None


def test_norm_of_float16_does_not_overflow():
    model = make_model("f2")
    model.W.grad = numpy.full((2, 2), 3e4, "f2")
    model.b.grad = numpy.zeros(2, "f2")
    optimizer = optimizers.SGD(lr=0.0).setup(model)
    optimizer.add_hook(optimizer_hooks.GradientClipping(2.0))
    optimizer.update()
    numpy.testing.assert_allclose(model.W.grad, 1.0, rtol=2e-3)


@pytest.mark.parametrize(
    ("dtype", "tolerance"), [("f8", 1e-14), ("f4", 1e-6), ("f2", 1e-3)]
)
@pytest.mark.parametrize("step", [1, 2])
def test_norm_of_more_than_a_block(dtype, tolerance, step):
    grad = numpy.random.default_rng(0).normal(size=step * 1030).astype(dtype)[::step]
    model = Link()
    with model.init_scope():
        model.W = Parameter(numpy.zeros(grad.shape, dtype))
    model.W.grad = grad.copy() if step == 1 else grad
    expected = grad.astype("f8") / numpy.linalg.norm(grad.astype("f8"))
    optimizer = optimizers.SGD(lr=0.0).setup(model)
    optimizer.add_hook(optimizer_hooks.GradientClipping(1.0))
    optimizer.update()
    numpy.testing.assert_allclose(
        model.W.grad, expected, rtol=tolerance, atol=tolerance / 1000
    )


def test_gradient_noise_fades():
    shape = (200, 100)
    param = Parameter(0.0, shape)
    rule = optimizers.SGD().create_update_rule()
    hook = optimizer_hooks.GradientNoise(0.1)
    numpy.random.seed(0)
    for t in (0, 100):
        rule.t = t
        param.grad = numpy.ones(shape, numpy.float32)
        hook(rule, param)
        deviation = (0.1 / (1 + t) ** 0.55) ** 0.5
        assert param.grad.dtype == numpy.float32
        assert param.grad.std() == pytest.approx(deviation, rel=0.03)
        assert param.grad.mean() == pytest.approx(1, abs=0.01)


def test_gradient_noise_of_ones_own():
    def noise(xp, shape, dtype, hook, rule):
        return xp.full(shape, hook.eta * rule.t, dtype)

    param = Parameter(0.0, (2,))
    param.grad = numpy.zeros(2, numpy.float32)
    rule = optimizers.SGD().create_update_rule()
    rule.t = 3
    rule.add_hook(optimizer_hooks.GradientNoise(0.5, noise))
    rule.update(param)
    numpy.testing.assert_allclose(param.grad, 0.5 * 4)


def step(make_optimizer, *hooks, n=3000):
    """Parameter and gradient after a step from 0.5 with gradients near 1."""
    x, g = numpy.full(n, 0.5), numpy.linspace(0.5, 1.5, n)
    model = Link()
    with model.init_scope():
        model.W = Parameter(x.copy())
    optimizer = make_optimizer().setup(model)
    for hook in hooks:
        optimizer.add_hook(hook)
    model.W.grad = g.copy()
    optimizer.update()
    return x, g, model.W


def test_decay_is_fused_with_the_update():
    x, g, W = step(lambda: optimizers.MomentumSGD(0.1), hooks.WeightDecay(0.25))
    numpy.testing.assert_allclose(W.grad, g + 0.25 * x, rtol=1e-15)
    numpy.testing.assert_allclose(W.array, x - 0.1 * (g + 0.25 * x), rtol=1e-15)
    numpy.testing.assert_allclose(
        W.update_rule.state["v"], -0.1 * (g + 0.25 * x), rtol=1e-15
    )


@pytest.mark.parametrize("dtype,rtol", [("f8", 1e-14), ("f4", 2e-6), ("f2", 3e-3)])
@pytest.mark.parametrize("stride", [1, 2])
def test_clipping_is_fused_with_the_update(dtype, rtol, stride):
    g = numpy.linspace(0.5, 1.5, 3000).astype(dtype)[::stride]
    model = Link()
    with model.init_scope():
        model.W = Parameter(numpy.full(3000, 0.5, dtype)[::stride])
        model.b = Parameter(numpy.zeros(2, dtype))
    optimizer = optimizers.MomentumSGD(0.1).setup(model)
    optimizer.add_hook(hooks.GradientClipping(2.0))
    model.W.grad, model.b.grad = g.copy(), numpy.array([3, -4], dtype)
    optimizer.update()
    wide = g.astype("f8")
    rate = 2.0 / math.sqrt((wide**2).sum() + 25)
    for param, grad in ((model.W, wide), (model.b, numpy.array([3.0, -4.0]))):
        numpy.testing.assert_allclose(param.grad, rate * grad, rtol=rtol)
        numpy.testing.assert_allclose(
            param.update_rule.state["v"], -0.1 * rate * grad, rtol=2 * rtol
        )
    numpy.testing.assert_allclose(model.W.array, 0.5 - 0.1 * rate * wide, rtol=rtol)


def test_clipping_leaves_small_gradients_as_they_are():
    x, g, W = step(lambda: optimizers.SGD(0.1), hooks.GradientClipping(1e3))
    assert numpy.array_equal(W.grad, g)
    numpy.testing.assert_allclose(W.array, x - 0.1 * g, rtol=1e-15)


def test_clipping_after_decay_scales_the_decayed_gradient():
    clip = hooks.GradientClipping(1.0)
    x, g, W = step(lambda: optimizers.SGD(0.1), hooks.WeightDecay(0.25), clip)
    decayed = g + 0.25 * x
    expected = decayed / numpy.linalg.norm(decayed)
    numpy.testing.assert_allclose(W.grad, expected, rtol=1e-14)
    numpy.testing.assert_allclose(W.array, x - 0.1 * expected, rtol=1e-14)


def test_decay_after_clipping_is_added_to_the_scaled_gradient():
    clip = hooks.GradientClipping(1.0)
    x, g, W = step(lambda: optimizers.SGD(0.1), clip, hooks.WeightDecay(0.25))
    expected = g / numpy.linalg.norm(g) + 0.25 * x
    numpy.testing.assert_allclose(W.grad, expected, rtol=1e-14)


def test_clipping_scales_the_gradient_of_a_disabled_rule():
    model = make_model("f4")
    params = list(model.params(include_uninit=False))
    for param in params:
        param.grad = numpy.full(param.shape, 2.0, "f4")
    optimizer = optimizers.SGD(0.1).setup(model)
    optimizer.add_hook(hooks.GradientClipping(1.0))
    model.W.update_rule.enabled = False
    before = model.W.array.copy()
    optimizer.update()
    assert numpy.array_equal(model.W.array, before)
    norm = 2.0 * math.sqrt(sum(param.size for param in params))
    for param in params:
        numpy.testing.assert_allclose(param.grad, 2.0 / norm, rtol=1e-6)


def test_a_hook_after_decay_gets_the_decayed_gradient():
    clip = hooks.GradientHardClipping(-1.0, 1.0)
    x, g, W = step(lambda: optimizers.SGD(0.1), hooks.WeightDecay(0.25), clip)
    expected = numpy.minimum(g + 0.25 * x, 1)
    numpy.testing.assert_allclose(W.grad, expected, rtol=1e-15)
    numpy.testing.assert_allclose(W.array, x - 0.1 * expected, rtol=1e-15)


class HalvedRule(optimizers.sgd.SGDRule):
    """A user-defined rule, which reads the gradient."""

    def update_core_cpu(self, param):
        param.array -= 0.5 * param.grad


class Halved(optimizers.SGD):
    def create_update_rule(self):
        return HalvedRule(self.hyperparam)


@pytest.mark.parametrize("rule_hook", [False, True])
def test_rules_and_hooks_that_read_the_gradient_get_the_changed_one(rule_hook):
    seen = []
    make = optimizers.SGD if rule_hook else Halved

    def make_optimizer():
        optimizer = make(0.5)
        create = optimizer.create_update_rule

        def create_with_hook():
            rule = create()
            if rule_hook:
                rule.add_hook(lambda _, p: seen.append(p.grad.copy()), "look")
            return rule

        optimizer.create_update_rule = create_with_hook
        return optimizer

    for hook, change in (
        (hooks.WeightDecay(0.25), lambda x, g: g + 0.25 * x),
        (hooks.GradientClipping(1.0), lambda _, g: g / numpy.linalg.norm(g)),
    ):
        seen.clear()
        x, g, W = step(make_optimizer, hook)
        expected = change(x, g)
        numpy.testing.assert_allclose(W.array, x - 0.5 * expected, rtol=1e-14)
        assert len(seen) == rule_hook
        for gradient in seen:
            numpy.testing.assert_allclose(gradient, expected, rtol=1e-14)
