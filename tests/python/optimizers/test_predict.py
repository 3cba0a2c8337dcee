"""Predictions of parameters, against formulas in float64 and against real updates."""

import numpy
import pytest

import renga
from renga import Parameter, UpdateRule, optimizers
from renga.utils.type_check import InvalidType
from tests.catalogue import OPTIMIZERS
from tests.catalogue.optimizers import ADAM
from tests.layouts import read_only, unaligned

UPDATES = 5
PREDICTING = [row for row in OPTIMIZERS.values() if row.step]
CASES = [(row.name, values) for row in PREDICTING for values in row.values]
cases = pytest.mark.parametrize(
    ("name", "values"), CASES, ids=[f"{c[0]}-{i}" for i, c in enumerate(CASES)]
)


def trained(name, values, array, updates=UPDATES, fp32=False):
    """A parameter over ``array`` and its rule, after updates by random gradients."""
    rng = numpy.random.default_rng(1)
    param = Parameter(array)
    rule = getattr(optimizers, name)(**values).create_update_rule()
    rule.use_fp32_update(fp32)
    for t in range(updates):
        grad = numpy.asarray(rng.normal(size=array.shape) / 2**t)
        param.grad = grad.astype(array.dtype)
        rule.update(param)
    return param, rule


def step_of(name, *args):
    return OPTIMIZERS[name].step(*args, UPDATES)


def expected_of(name, values, param, rule, steps):
    x = param.array.astype("f8")
    state = {key: array.astype("f8") for key, array in rule.state.items()}
    return x + steps * step_of(name, values, x, param.grad.astype("f8"), state)


def linspace(shape, dtype):
    return numpy.linspace(-1, 1, int(numpy.prod(shape))).reshape(shape).astype(dtype)


@cases
@pytest.mark.parametrize("steps", [1, 4])
@pytest.mark.parametrize(
    ("dtype", "tolerance"), [("f8", 1e-14), ("f4", 1e-6), ("f2", 2e-3)]
)
def test_formula(name, values, steps, dtype, tolerance):
    param, rule = trained(name, values, linspace((5, 7), dtype))
    kept = {"x": param.array.copy(), "g": param.grad.copy()}
    states = {key: array.copy() for key, array in rule.state.items()}
    y = rule.predict(param, steps)
    expected = expected_of(name, values, param, rule, steps)
    assert abs(expected - param.array).max() > 3e-3
    numpy.testing.assert_allclose(y, expected, rtol=tolerance, atol=tolerance)
    assert (y.dtype, y.shape) == (param.dtype, param.shape)
    out = numpy.full_like(param.array, numpy.nan)
    assert rule.predict(param, steps, out) is out
    numpy.testing.assert_array_equal(out, y)
    # Nothing else has changed.
    numpy.testing.assert_array_equal(param.array, kept["x"])
    numpy.testing.assert_array_equal(param.grad, kept["g"])
    assert rule.t == UPDATES
    for key, array in states.items():
        numpy.testing.assert_array_equal(rule.state[key], array)


@pytest.mark.parametrize("row", PREDICTING, ids=lambda row: row.name)
def test_a_constant_gradient_is_predicted_exactly(row):
    values, before, steps = row.settled
    param = Parameter(linspace((11,), "f8"))
    param.grad = linspace((11,), "f8") + 0.05
    rule = row.kind(**values).create_update_rule()
    for _ in range(before):
        rule.update(param)
    predicted = rule.predict(param, steps)
    start = param.array.copy()
    for _ in range(steps):
        rule.update(param)
    assert abs(param.array - start).max() > 3e-4
    numpy.testing.assert_allclose(predicted, param.array, rtol=0, atol=1e-12)


@cases
def test_strided_arrays(name, values):
    memory = numpy.zeros((6, 8, 10))
    x = memory[::-2, 1:, ::3].transpose(2, 0, 1)
    x[...] = linspace(x.shape, "f8")
    param, rule = trained(name, values, x)
    expected = expected_of(name, values, param, rule, 3)
    numpy.testing.assert_allclose(rule.predict(param, 3), expected, rtol=1e-13)
    buffer = numpy.full((4, 6, 14), 7.0)
    rule.predict(param, 3, buffer[:, ::2, ::-2])
    numpy.testing.assert_allclose(buffer[:, ::2, ::-2], expected, rtol=1e-13)
    assert (buffer[:, 1::2] == 7).all() and (buffer[:, :, ::2] == 7).all()


@cases
@pytest.mark.parametrize("dtype", ["f4", "f2"])
def test_arrays_divided_among_threads(name, values, dtype):
    tolerance = 1e-6 if dtype == "f4" else 2e-3
    param, rule = trained(name, values, linspace((100_003,), dtype))
    expected = expected_of(name, values, param, rule, 2)
    numpy.testing.assert_allclose(
        rule.predict(param, 2), expected, rtol=tolerance, atol=tolerance
    )


@cases
@pytest.mark.parametrize("shape", [(), (0, 3), (1,)])
def test_shapes_at_the_edge(name, values, shape):
    param, rule = trained(name, values, numpy.full(shape, 2.0))
    y = rule.predict(param, 3)
    assert y.shape == shape
    expected = expected_of(name, values, param, rule, 3)
    numpy.testing.assert_allclose(y, expected, rtol=1e-13)


@cases
def test_float16_is_predicted_from_its_float32_values(name, values):
    param, rule = trained(name, values, linspace((5, 7), "f2"), fp32=True)
    master = rule._fp32_param.array
    assert rule.state is not None and master.dtype == numpy.float32
    state = {key: array.astype("f8") for key, array in rule.state.items()}
    x, grad = master.astype("f8"), param.grad.astype("f8")
    expected = x + 3 * step_of(name, values, x, grad, state)
    out = numpy.zeros((5, 14), "f2")[:, ::2]
    for y in (rule.predict(param, 3), rule.predict(param, 3, out)):
        assert y.dtype == numpy.float16
        # One rounding to float16, half a unit in the last place.
        numpy.testing.assert_allclose(y, expected, rtol=2**-11 + 1e-5, atol=1e-6)


@pytest.mark.parametrize("fp32", [False, True])
def test_gradients_are_divided_by_the_loss_scale(fp32):
    param, rule = trained("SGD", {"lr": 0.5}, numpy.ones(3, "f2"), 1, fp32)
    before = rule._fp32_param.array if fp32 else param.array
    param.grad = numpy.full(3, 64, "f2")
    param.loss_scale = 128.0
    numpy.testing.assert_allclose(
        rule.predict(param, 2), before.astype("f8") - 0.5, rtol=2**-10
    )
    assert param.loss_scale == 128.0
    numpy.testing.assert_array_equal(param.grad, 64)


@cases
def test_present_values_without_steps(name, values):
    fresh, rule = trained(name, values, linspace((5, 7), "f4"), updates=0)
    for steps in (0, 3):
        y = rule.predict(fresh, steps)
        numpy.testing.assert_array_equal(y, fresh.array)
        assert not numpy.shares_memory(y, fresh.array)
    assert rule.state is None
    param, rule = trained(name, values, linspace((5, 7), "f4"))
    for array in rule.state.values():
        array[0] = numpy.inf
    numpy.testing.assert_array_equal(rule.predict(param, 0), param.array)
    rule.enabled = False
    numpy.testing.assert_array_equal(rule.predict(param, 3), param.array)


def test_sgd_without_a_gradient_stays():
    param, rule = trained("SGD", {"lr": 0.5}, numpy.ones(3))
    param.cleargrad()
    numpy.testing.assert_array_equal(rule.predict(param, 3), param.array)


def of_zero_strides(x):
    y = numpy.broadcast_to(x[:1], x.shape)
    y.flags.writeable = True
    return y


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (read_only, ValueError, "predict: out: .*read-only"),
        (unaligned, ValueError, "predict: out: .*aligned"),
        (lambda x: x.astype(">f8"), ValueError, "predict: out: .*native byte order"),
        (of_zero_strides, ValueError, "predict: out: .*do not overlap"),
        (lambda x: x.astype("f4"), InvalidType, "predict: .*float64.*got.*float32"),
        (lambda x: x.astype("i8"), InvalidType, "predict: .*float64.*got.*int64"),
        (lambda x: x[:2], InvalidType, r"predict: .*\(3,\).*got \(2,\)"),
        (lambda x: x.tolist(), TypeError, r"predict: out: .*numpy\.ndarray"),
    ],
)
def test_results_that_cannot_be_written(make, error, message):
    param, rule = trained("MomentumSGD", {}, numpy.ones(3))
    out = make(numpy.full(3, 7.0))
    with pytest.raises(error, match=message):
        rule.predict(param, 2, out)
    numpy.testing.assert_array_equal(out, 7)


def test_results_that_overlap():
    memory = numpy.ones(8)
    param, rule = trained("MomentumSGD", {"momentum": 0.5}, memory[:4])
    kept, velocity = memory.copy(), rule.state["v"].copy()
    for out in (param.array, memory[2:6], memory[3::-1], rule.state["v"]):
        with pytest.raises(ValueError, match="predict: .*overlap"):
            rule.predict(param, 2, out)
    numpy.testing.assert_array_equal(memory, kept)
    numpy.testing.assert_array_equal(rule.state["v"], velocity)
    rule.predict(param, 2, memory[4:])
    numpy.testing.assert_allclose(memory[4:], kept[:4] + 2 * velocity)


@pytest.mark.parametrize(
    ("steps", "error"), [(-1, ValueError), (1.5, TypeError), ("2", TypeError)]
)
def test_invalid_steps(steps, error):
    param, rule = trained("MomentumSGD", {}, numpy.ones(3))
    with pytest.raises(error, match="MomentumSGDRule.predict: steps: expected"):
        rule.predict(param, steps)
    optimizer = optimizers.SGD().setup(Model())
    with pytest.raises(error, match="SGD.predict: steps: expected"):
        optimizer.predict(steps)


def test_steps_of_numpy():
    param, rule = trained("MomentumSGD", {}, numpy.ones(3))
    numpy.testing.assert_array_equal(
        rule.predict(param, numpy.int64(2)), param.array + 2 * rule.state["v"]
    )


@pytest.mark.parametrize(
    "name", [row.name for row in OPTIMIZERS.values() if row.step is None]
)
@pytest.mark.parametrize("updates", [0, 1])
def test_other_rules_name_those_that_can_predict(name, updates):
    param, rule = trained(name, {}, numpy.ones(3), updates)
    message = f"{type(rule).__name__}.predict: .*SGD, MomentumSGD, NesterovAG, or Adam"
    with pytest.raises(NotImplementedError, match=message):
        rule.predict(param, 1)


def test_overridden_updates_need_a_step_of_their_own():
    momentum = type(optimizers.MomentumSGD().create_update_rule())

    class Doubled(momentum):
        def update_core_cpu(self, param):
            super().update_core_cpu(param)
            param.array[...] += self.state["v"]

    class Predicting(Doubled):
        def next_step(self, param):
            return renga._core.optimizers.ScaledStep(self.state["v"], 2.0)

    def rule_of(cls):
        rule, param = cls(optimizers.MomentumSGD().hyperparam), Parameter(numpy.ones(3))
        param.grad = numpy.ones(3)
        rule.update(param)
        return rule, param

    rule, param = rule_of(Doubled)
    with pytest.raises(NotImplementedError, match="Doubled.predict"):
        rule.predict(param, 1)
    rule, param = rule_of(Predicting)
    numpy.testing.assert_allclose(rule.predict(param, 3), 1 - 8 * 0.01, rtol=1e-14)
    rule, param = rule_of(momentum)
    rule.update_core = lambda param: None
    with pytest.raises(NotImplementedError, match="MomentumSGDRule.predict"):
        rule.predict(param, 1)
    with pytest.raises(NotImplementedError, match="UpdateRule.predict"):
        UpdateRule.next_step(UpdateRule(), param)


def test_an_uninitialized_parameter_is_refused():
    rule = optimizers.SGD().create_update_rule()
    with pytest.raises(ValueError, match="expected an initialized parameter, got w"):
        rule.predict(Parameter(1.0, name="w"), 1)


class Model(renga.Link):
    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.a = Parameter(numpy.ones((2, 3), "f4"))
            self.b = Parameter(numpy.full(4, 2.0))
            self.c = Parameter(numpy.full(3, 0.5, "f2"))
            self.fixed = Parameter(numpy.full((), 3, "f4"))
            self.lazy = Parameter(1.0)


def trained_model(optimizer):
    model = Model()
    optimizer.use_fp32_update()
    optimizer.setup(model)
    model.fixed.update_rule = None
    model.b.update_rule = optimizers.Adam(**ADAM).create_update_rule()
    for t in range(UPDATES):
        for param in model.params(include_uninit=False):
            param.grad = numpy.full(param.shape, 0.1 + t, param.dtype)
        optimizer.update()
    return model


def test_all_parameters_of_an_optimizer():
    optimizer = optimizers.MomentumSGD(lr=0.01, momentum=0.7)
    model = trained_model(optimizer)
    results = optimizer.predict(3)
    params = [model.a, model.b, model.c, model.fixed]
    assert [(y.shape, y.dtype) for y in results] == [(p.shape, p.dtype) for p in params]
    velocity = 0.0
    for t in range(UPDATES):
        velocity = 0.7 * velocity - 0.01 * (0.1 + t)
    a, b, c, fixed = results
    numpy.testing.assert_allclose(a, model.a.array + 3 * velocity, rtol=1e-6)
    rule = model.b.update_rule
    numpy.testing.assert_allclose(
        b, expected_of("Adam", ADAM, model.b, rule, 3), rtol=1e-13
    )
    numpy.testing.assert_allclose(
        c.astype("f8"), model.c.array + 3 * velocity, rtol=2e-3, atol=1e-3
    )
    numpy.testing.assert_array_equal(fixed, 3)
    outs = [numpy.zeros_like(y) for y in results]
    returned = optimizer.predict(3, outs)
    for y, out, again in zip(results, outs, returned):
        assert out is again
        numpy.testing.assert_array_equal(out, y)


def test_results_for_an_optimizer_that_do_not_fit():
    optimizer = optimizers.MomentumSGD()
    with pytest.raises(RuntimeError, match="MomentumSGD.predict: expected setup"):
        optimizer.predict(1)
    model = trained_model(optimizer)
    outs = optimizer.predict(1)
    with pytest.raises(ValueError, match="each of 4 initialized .* got 3 outs"):
        optimizer.predict(1, outs[:3])
    kept = [numpy.array(p.array) for p in model.params(include_uninit=False)]
    shared = numpy.zeros(6, "f4")
    for bad in (
        [shared.reshape(2, 3), *outs[1:3], shared[5:].reshape(())],
        [outs[0], outs[1], outs[2], model.a.array[0, :1].reshape(())],
    ):
        with pytest.raises(ValueError, match="predict: .*overlap"):
            optimizer.predict(1, bad)
    for param, array in zip(model.params(include_uninit=False), kept):
        numpy.testing.assert_array_equal(param.array, array)


def test_an_optimizer_with_a_rule_that_cannot_predict():
    optimizer = optimizers.MomentumSGD()
    model = trained_model(optimizer)
    model.b.update_rule = optimizers.RMSprop().create_update_rule()
    with pytest.raises(NotImplementedError, match="RMSpropRule.predict"):
        optimizer.predict(1)
