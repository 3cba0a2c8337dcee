"""Optimizer: the target, hooks, epochs, loss scaling and the update of a model."""

import copy

import numpy
import pytest

import renga
from renga import Chain, Link, Parameter, optimizers
from renga.core.optimizer.update_rule import require_own_rules
from renga.optimizer import GradientMethod, Optimizer
from renga.optimizers.sgd import SGDRule
from renga.serializers import DictionarySerializer, NpzDeserializer


class Model(Link):
    """One parameter; the loss is its sum with given weights."""

    def __init__(self, dtype=numpy.float32):
        super().__init__()
        with self.init_scope():
            self.w = Parameter(numpy.ones(2, dtype))
            self.unused = Parameter(numpy.ones(1, dtype))

    def loss(self, weights):
        product = self.w * numpy.asarray(weights, self.w.dtype)
        return product[0] + product[1]


def test_setup():
    optimizer = optimizers.SGD()
    model = Model()
    optimizer.t = 3
    assert optimizer.setup(model) is optimizer
    assert optimizer.target is model
    assert (optimizer.t, optimizer.epoch) == (0, 0)
    assert model.w.update_rule.hyperparam.parent is optimizer.hyperparam
    with pytest.raises(TypeError, match="expected a Link"):
        optimizer.setup(3)


def test_update_with_a_loss_function():
    model = Model()
    optimizer = optimizers.SGD(lr=0.5).setup(model)
    optimizer.update(model.loss, weights=[1, 2])
    numpy.testing.assert_array_equal(model.w.array, [0.5, 0.0])
    assert optimizer.t == 1
    # The gradients of the call before are gone.
    optimizer.update(model.loss, [1, 2])
    numpy.testing.assert_array_equal(model.w.array, [0.0, -1.0])


def test_parameter_without_a_gradient_has_a_zero_one():
    model = Model()
    optimizer = optimizers.MomentumSGD(lr=1.0, momentum=0.5).setup(model)
    model.unused.grad = numpy.ones(1, numpy.float32)
    model.w.cleargrad()
    optimizer.update()
    optimizer.update(model.loss, [0, 0])  # only the velocity moves it now
    numpy.testing.assert_array_equal(model.unused.array, [1 - 1 - 0.5])


def test_uninitialized_parameters_wait():
    model = Model()
    with model.init_scope():
        model.lazy = Parameter(1.0)
    optimizer = optimizers.SGD().setup(model)
    optimizer.update(model.loss, [0, 0])
    assert not model.lazy.is_initialized


def test_updates_before_a_parameter_has_a_shape_count(tmp_path):
    """As they do for one with a shape that is not used yet."""
    optimizer = make_lazy()
    for _ in range(2):
        optimizer.update(optimizer.target.loss, [0, 0])
    renga.serializers.save_npz(tmp_path / "file", optimizer)
    resumed = make_lazy()
    renga.serializers.load_npz(tmp_path / "file", resumed)
    for each in (optimizer, resumed):
        lazy = each.target.lazy
        lazy.initialize(1)
        lazy.grad = numpy.ones(1, numpy.float32)
        each.update()
        third = (1 - 0.999**3) ** 0.5 / (1 - 0.9**3) * 0.1 / 0.001**0.5
        numpy.testing.assert_allclose(lazy.array, 1 - third, rtol=1e-5)


def make_lazy():
    model = Model()
    with model.init_scope():
        model.lazy = Parameter(1.0)
    return optimizers.Adam(1.0).setup(model)


def test_base_classes_demand_an_override():
    with pytest.raises(NotImplementedError):
        Optimizer().update()
    with pytest.raises(NotImplementedError):
        GradientMethod().create_update_rule()


def test_override_of_create_update_rule_is_what_runs():
    class Own(renga.UpdateRule):
        def update_core_cpu(self, param):
            param.array[...] = 7

    class Mine(optimizers.SGD):
        def create_update_rule(self):
            return Own(self.hyperparam)

    model = Model()
    Mine().setup(model).update(model.loss, [0, 0])
    numpy.testing.assert_array_equal(model.w.array, [7, 7])


@pytest.mark.parametrize("rule", [renga.UpdateRule, SGDRule])
def test_rules_without_an_optimizers_hyperparameters_are_no_other_ones(rule):
    class Mine(optimizers.SGD):
        def create_update_rule(self):
            return rule()

    model = Model()
    mine = Mine().setup(model)
    require_own_rules("some call", mine)
    optimizers.SGD().setup(model)
    with pytest.raises(ValueError, match="some call: .*/unused, .* of another one"):
        require_own_rules("some call", mine)


class Hook:
    """Records its calls."""

    name = "Hook"

    def __init__(self, notes, each=False, timing="pre"):
        self.notes = notes
        self.call_for_each_param = each
        self.timing = timing

    def __call__(self, *args):
        self.notes.append((self.timing, *args))


def test_hooks_for_the_optimizer_and_for_each_parameter():
    model, notes = Model(), []
    optimizer = optimizers.SGD().setup(model)
    optimizer.add_hook(Hook(notes))
    optimizer.add_hook(Hook(notes, each=True, timing="post"), "each")
    optimizer.add_hook(lambda opt: notes.append(("forced", opt.t)), "f", timing="post")
    optimizer.update(model.loss, [1, 1])
    unused, w = model.unused, model.w
    expected = [
        ("pre", optimizer),
        ("post", unused.update_rule, unused),
        ("post", w.update_rule, w),
        ("forced", 1),
    ]
    assert len(notes) == len(expected)
    for note, want in zip(notes, expected):
        assert note[0] == want[0]
        assert all(x is y or x == 1 for x, y in zip(note[1:], want[1:]))
    with pytest.raises(KeyError, match="Hook"):
        optimizer.add_hook(Hook(notes))
    optimizer.remove_hook("Hook")
    notes.clear()
    optimizer.update(model.loss, [1, 1])
    assert all(note[0] != "pre" for note in notes)


def test_epochs():
    optimizer = optimizers.SGD().setup(Model())
    optimizer.new_epoch()
    assert optimizer.epoch == 1
    with pytest.raises(RuntimeError, match="auto=True"):
        optimizer.new_epoch(auto=True)
    optimizer.use_auto_new_epoch = True
    optimizer.new_epoch(auto=True)
    assert optimizer.epoch == 2
    with pytest.raises(RuntimeError, match="duplicated"):
        optimizer.new_epoch()


def test_disabled_links_are_not_updated():
    model = Chain(a=Model(), b=Model())
    optimizer = optimizers.SGD(lr=1.0).setup(model)
    model.a.disable_update()
    assert not model.a.update_enabled
    assert model.update_enabled
    optimizer.update(lambda: model.a.loss([1, 1]) + model.b.loss([1, 1]))
    numpy.testing.assert_array_equal(model.a.w.array, [1, 1])
    numpy.testing.assert_array_equal(model.b.w.array, [0, 0])
    model.a.enable_update()
    optimizer.update(lambda: model.a.loss([1, 1]) + model.b.loss([1, 1]))
    numpy.testing.assert_array_equal(model.a.w.array, [0, 0])


def test_constant_loss_scale():
    model = Model(numpy.float16)
    optimizer = optimizers.SGD(lr=1.0).setup(model)
    optimizer.set_loss_scale(1024.0)
    seen = []
    optimizer.add_hook(lambda opt: seen.append(model.w.grad.copy()), "see")
    optimizer.update(model.loss, [0.5, 0.25])
    numpy.testing.assert_array_equal(seen[0], [512, 256])
    numpy.testing.assert_array_equal(model.w.array, [0.5, 0.75])
    # Without the scale again, the next gradient is not divided.
    optimizer.set_loss_scale(None)
    optimizer.update(model.loss, [0.5, 0.25])
    numpy.testing.assert_array_equal(model.w.array, [0, 0.5])


def test_dynamic_loss_scale():
    model = Model()
    optimizer = optimizers.SGD(lr=0.0).setup(model)
    optimizer.loss_scaling(interval=2)
    overflow = [False, False, False, True, False, False, True, True, True, True]
    scales = []

    class Loss:
        def __init__(self, gradient):
            self.gradient = gradient

        def backward(self, loss_scale):
            scales.append(loss_scale)
            model.w.grad = numpy.full(2, self.gradient, numpy.float32)

    for nan in overflow:
        before = model.w.array.copy()
        optimizer.update(Loss, numpy.nan if nan else 1)
        assert optimizer.is_safe_to_update() != nan
        numpy.testing.assert_array_equal(model.w.array, before)
    root = 2**0.5
    expected = [1, 2, 4, 8, 4, 4 * root, 8, 4, 2, 1]
    numpy.testing.assert_allclose(scales, expected, rtol=1e-12)
    assert optimizer.t == len(overflow)
    assert model.w.update_rule.t == overflow.count(False)
    with pytest.raises(ValueError, match="interval"):
        optimizer.loss_scaling(interval=0)


def test_fp32_update_reaches_every_rule():
    before, after = Model(numpy.float16), Model(numpy.float16)
    optimizer = optimizers.SGD(lr=2.0**-13)
    optimizer.setup(before)
    optimizer.use_fp32_update()
    other = optimizers.SGD(lr=2.0**-13)
    other.use_fp32_update()
    other.setup(after)
    for opt, model in ((optimizer, before), (other, after)):
        for _ in range(8):
            opt.update(model.loss, [1, 1])
        numpy.testing.assert_array_equal(model.w.array, 1 - 2.0**-10)


def test_resume_is_exact():
    def train(optimizer, steps):
        for step in range(steps):
            optimizer.update(optimizer.target.loss, [step, 1])

    optimizer = optimizers.Adam(amsgrad=True).setup(Model())
    train(optimizer, 3)
    optimizer.new_epoch()
    saved = DictionarySerializer()
    optimizer.serialize(saved)
    contents = copy.deepcopy(saved.target)
    keys = ["t", "m", "v", "vhat"]
    expected = {"t", "epoch"}
    expected |= {f"{name}/{key}" for name in ("/unused", "/w") for key in keys}
    assert {key.lstrip("/") for key in contents} == {k.lstrip("/") for k in expected}
    resumed = optimizers.Adam(amsgrad=True).setup(Model())
    resumed.target.copyparams(optimizer.target)
    resumed.serialize(NpzDeserializer(contents))
    assert (resumed.t, resumed.epoch) == (3, 1)
    for each in (optimizer, resumed):
        train(each, 2)
    numpy.testing.assert_array_equal(resumed.target.w.array, optimizer.target.w.array)
