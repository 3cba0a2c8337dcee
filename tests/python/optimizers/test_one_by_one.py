"""Updates that take parameters one after another, as their gradients come."""

import numpy
import pytest

import renga
from renga import Link, Parameter, optimizer_hooks, optimizers
from renga.optimizer import GradientMethod
from renga.optimizers.sgd import SGDRule


def model_of(*values):
    link = Link()
    with link.init_scope():
        for name, value in zip("abc", values):
            setattr(link, name, Parameter(numpy.array(value, numpy.float32)))
        link.later = Parameter()
    return link


class OtherRule(SGDRule):
    def update_core(self, param):
        super().update_core(param)


class OtherSteps(optimizers.SGD):
    def check_nan_in_grads(self):
        super().check_nan_in_grads()


def plain():
    return optimizers.SGD(0.5).setup(model_of([1, 2], [3]))


def changed(change):
    optimizer = plain()
    change(optimizer)
    return optimizer


def replace_rule(optimizer):
    optimizer.target.b.update_rule = OtherRule(optimizer.hyperparam)


def with_hooks(*hooks):
    def change(optimizer):
        for i, hook in enumerate(hooks):
            optimizer.add_hook(hook, str(i))

    return change


DECAY = optimizer_hooks.WeightDecay(0.25)


@pytest.mark.parametrize("hooks", [(), (DECAY,)])
def test_rules_and_decay_look_at_one_parameter(hooks):
    assert changed(with_hooks(*hooks)).updates_one_by_one


@pytest.mark.parametrize(
    "change",
    [
        with_hooks(optimizer_hooks.GradientClipping(1)),
        with_hooks(DECAY, optimizer_hooks.WeightDecay(0.5)),
        with_hooks(optimizer_hooks.GradientClipping(1), DECAY),
        with_hooks(lambda optimizer: None),
        lambda optimizer: optimizer.loss_scaling(),
        lambda optimizer: optimizer.target.a.update_rule.add_hook(print),
        replace_rule,
        lambda optimizer: setattr(optimizer, "call_hooks", lambda timing: None),
        lambda optimizer: setattr(optimizer, "update", lambda: None),
        lambda optimizer: setattr(optimizer, "__class__", OtherSteps),
    ],
)
def test_what_may_look_at_others(change):
    assert not changed(change).updates_one_by_one


@pytest.mark.parametrize("rate", [0.0, 0.25])
def test_parameters_change_as_their_gradients_come(rate):
    optimizer = plain()
    model = optimizer.target
    if rate:
        optimizer.add_hook(optimizer_hooks.WeightDecay(rate))
    seen = []
    optimizer.add_hook(lambda o: seen.append(o.t), "after", "post")
    g = numpy.array([4, -4], numpy.float32)
    before = model.a.array.copy()

    def arrive():
        assert optimizer.t == 1 and not seen
        model.b.cleargrad()  # nobody has one: it counts as zero
        yield model.b
        expected = 3 * (1 - 0.5 * rate)
        numpy.testing.assert_array_equal(model.b.array, [expected])
        numpy.testing.assert_array_equal(model.a.array, before)
        model.a.grad = g.copy()
        yield model.a

    optimizer.update_one_by_one(arrive())
    expected = before - 0.5 * (g + rate * before)
    numpy.testing.assert_array_equal(model.a.array, expected)
    numpy.testing.assert_array_equal(model.a.grad, g + rate * before)
    assert seen == [1] and optimizer.t == 1
    assert model.a.update_rule.t == model.b.update_rule.t == 1
    assert model.later.update_rule.t == 0


def test_the_scale_of_the_loss_is_taken_out():
    optimizer = plain()
    param = optimizer.target.b
    optimizer.add_hook(DECAY)

    def arrive():
        param.grad, param._loss_scale = numpy.array([8], numpy.float32), 4.0
        yield param

    optimizer.update_one_by_one(arrive())
    numpy.testing.assert_array_equal(param.array, [3 - 0.5 * (8 / 4 + 0.25 * 3)])


def test_other_kinds_of_optimizers_do_not_offer_it():
    class Own(GradientMethod):
        def update(self, lossfun=None, *args, **kwds):
            super().update(lossfun, *args, **kwds)

        def create_update_rule(self):
            return SGDRule(self.hyperparam)

    own = Own()
    own.hyperparam.lr = 0.5
    assert not own.setup(model_of([1])).updates_one_by_one
    assert not hasattr(renga.Optimizer(), "updates_one_by_one")
