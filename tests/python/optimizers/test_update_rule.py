"""UpdateRule: what a subclass may override, hooks, float32 copies, state on disk."""

import copy

import numpy
import pytest

import renga.functions as F
from renga import Parameter, UpdateRule, optimizers
from renga.serializers import DictionarySerializer, NpzDeserializer
from tests.catalogue import OPTIMIZERS


class Recording(UpdateRule):
    """Records its calls."""

    def __init__(self):
        super().__init__()
        self.notes = []

    def init_state(self, param):
        self.notes.append("init_state")
        self.state["a"] = numpy.zeros_like(param.array)

    def update_core_cpu(self, param):
        self.notes.append(("core", self.t))


def make_param(dtype=numpy.float32):
    param = Parameter(numpy.ones(2, dtype))
    param.grad = numpy.full(2, 0.5, dtype)
    return param


def test_order_of_calls():
    rule, param = Recording(), make_param()
    rule.add_hook(lambda r, p: rule.notes.append("post"), "b", timing="post")
    rule.add_hook(lambda r, p: rule.notes.append("pre"), "a")
    rule.update(param)
    rule.update(param)
    assert rule.notes == [
        *("init_state", "pre", ("core", 1), "post"),
        *("pre", ("core", 2), "post"),
    ]


def test_override_of_update_core_and_on_one_instance():
    rule, param = Recording(), make_param()
    rule.update_core = lambda p: rule.notes.append("mine")
    rule.update(param)
    assert rule.notes == ["init_state", "mine"]


def test_disabled_uninitialized_and_without_gradient():
    rule, param = Recording(), make_param()
    rule.enabled = False
    rule.update(param)
    assert rule.t == 0
    rule.enabled = True
    rule.update(Parameter(1.0))
    assert rule.notes == []
    param.cleargrad()
    rule.update(param)
    assert rule.notes == ["init_state"]


def test_base_class_has_no_rule():
    with pytest.raises(NotImplementedError):
        UpdateRule().update(make_param())


def test_hook_errors():
    rule = Recording()
    with pytest.raises(TypeError, match="callable"):
        rule.add_hook(3)
    with pytest.raises(ValueError, match="timing"):
        rule.add_hook(print, timing="never")
    rule.add_hook(print)
    with pytest.raises(KeyError, match="already exists"):
        rule.add_hook(print, timing="post")
    with pytest.raises(KeyError):
        rule.remove_hook("nothing")
    rule.remove_hook("print")
    rule.add_hook(print)

    class Nameless:
        def __call__(self, rule, param):
            pass

    with pytest.raises(ValueError, match="name"):
        rule.add_hook(Nameless())


def test_fp32_update_keeps_what_float16_would_lose():
    rule, param = optimizers.SGD(lr=2**-12).create_update_rule(), make_param("f2")
    rule.use_fp32_update()
    for _ in range(8):
        rule.update(param)
    # Each step of 2^-13 alone rounds away: the float16 below 1 are 2^-11 apart.
    numpy.testing.assert_array_equal(param.array, numpy.float16(1 - 2**-10))
    assert param.dtype == numpy.float16
    plain, param = optimizers.SGD(lr=2**-12).create_update_rule(), make_param("f2")
    plain.update(param)
    numpy.testing.assert_array_equal(param.array, 1)


class OfRanks(Parameter):
    """A parameter that cannot be made without the number of its ranks."""

    def __init__(self, ranks, array):
        super().__init__(array)
        self.ranks = ranks


def test_hooks_see_the_kind_of_parameter_that_is_updated_in_fp32():
    seen = []
    rule, param = optimizers.SGD(lr=1.0).create_update_rule(), make_param("f2")
    param = OfRanks(3, param.array)
    param.update_rule = rule
    rule.use_fp32_update()
    rule.add_hook(lambda rule, p: seen.append(p), name="see")
    for _ in range(2):
        param.grad = numpy.full(2, 0.25, "f2")
        rule.update(param)
        rule.set_values(rule.get_values())  # as if they were loaded
    for master in seen:
        assert (type(master), master.ranks) == (OfRanks, 3)
        assert master.update_rule is rule
        assert master.dtype == numpy.float32
    numpy.testing.assert_array_equal(param.array, [0.5, 0.5])
    assert param.dtype == numpy.float16


def test_fp32_update_does_not_affect_other_dtypes():
    rule, param = optimizers.SGD(lr=1.0).create_update_rule(), make_param("f8")
    rule.use_fp32_update()
    array = param.array
    rule.update(param)
    numpy.testing.assert_array_equal(array, [0.5, 0.5])


@pytest.mark.parametrize("fp32", [False, True])
def test_gradients_are_divided_by_the_loss_scale(fp32):
    rule, param = optimizers.SGD(lr=1.0).create_update_rule(), make_param("f2")
    rule.use_fp32_update(fp32)
    param.cleargrad()
    F.sum(param * 0.5).backward(loss_scale=128.0)
    numpy.testing.assert_array_equal(param.grad, [64, 64])
    rule.update(param)
    numpy.testing.assert_array_equal(param.array, [0.5, 0.5])


def test_loss_scale_keeps_gradients_below_float16():
    rule, param = optimizers.SGD(lr=2.0**20).create_update_rule(), make_param("f2")
    rule.use_fp32_update()
    param.cleargrad()
    # The gradient is 2^-25, half of the smallest float16.
    F.sum(param * 2.0**-12 * 2.0**-13).backward(loss_scale=2.0**15)
    rule.update(param)
    numpy.testing.assert_array_equal(param.array, 1 - 2.0**-5)


def save(rule):
    saved = DictionarySerializer()
    rule.serialize(saved)
    # The dictionary has the arrays of the rule, which later updates change.
    return copy.deepcopy(saved.target)


@pytest.mark.parametrize("fp32", [False, True])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_resume_is_exact(name, fp32):
    def train(rule, param, steps):
        for step in range(steps):
            param.grad = (param.array * 0.1 + step).astype(param.dtype)
            rule.update(param)

    def make_rule():
        rule = OPTIMIZERS[name].make().create_update_rule()
        rule.use_fp32_update(fp32)
        return rule

    dtype = "f2" if fp32 else "f4"
    rule, param = make_rule(), make_param(dtype)
    train(rule, param, 3)
    saved = save(rule)
    resumed, copied = make_rule(), Parameter(param.array.copy())
    resumed.serialize(NpzDeserializer(saved))
    assert resumed.t == 3
    train(rule, param, 2)
    train(resumed, copied, 2)
    numpy.testing.assert_array_equal(copied.array, param.array)


def test_load_into_a_rule_in_use():
    rule, other = optimizers.Adam().create_update_rule(), make_param()
    rule.update(other)
    saved = save(rule)
    rule.update(other)
    rule.serialize(NpzDeserializer(saved))
    assert rule.t == 1
    numpy.testing.assert_allclose(rule.state["m"], 0.05, rtol=1e-6)


def test_load_of_a_rule_that_has_not_run():
    saved = save(optimizers.Adam().create_update_rule())
    rule = optimizers.Adam().create_update_rule()
    rule.serialize(NpzDeserializer(saved, strict=False))
    assert rule.state is None
    rule.update(make_param())
    assert rule.t == 1


@pytest.mark.parametrize("strict", [True, False])
def test_an_entry_of_the_state_may_be_none(strict):
    class Lazy(UpdateRule):
        def init_state(self, param):
            self.state.update(count=0, later=None)

        def update_core(self, param):
            self.state["count"] += 1

    rule, param = Lazy(), make_param()
    param.grad = numpy.ones(2, "f")
    for _ in range(3):
        rule.update(param)
    saved = save(rule)
    rule = Lazy()
    rule.serialize(NpzDeserializer(saved, strict=strict))
    rule.update(param)
    assert rule.t == rule.state["count"] == 4 and rule.state["later"] is None


@pytest.mark.parametrize("dtype", ["f4", "f2"])
def test_values_continue_in_another_rule(dtype):
    """As MomentumSGD defines it, in the dtype of the parameter or of its copy."""
    params = [Parameter(numpy.array([2, 3], dtype)) for _ in range(2)]
    rules = []
    for param in params:
        rule = optimizers.MomentumSGD(lr=0.25, momentum=0.5).create_update_rule()
        rule.use_fp32_update()
        rules.append(rule)
        param.grad = numpy.array([1, 2], dtype)
    assert rules[0].get_values() == (0, None, None)
    rules[0].update(params[0])
    t, state, master = rules[0].get_values()
    numpy.testing.assert_array_equal(state["v"], [-0.25, -0.5])
    assert (t, state["v"].dtype, master is None) == (1, "f4", dtype == "f4")
    params[1].array[...] = params[0].array
    rules[1].set_values(copy.deepcopy(rules[0].get_values()))
    rules[1].update(params[1])
    assert rules[1].t == 2
    # v = 0.5 * [-0.25, -0.5] - 0.25 * [1, 2], and x = [2, 3] + [-0.25, -0.5] + v
    numpy.testing.assert_array_equal(params[1].array, [1.375, 1.75])
