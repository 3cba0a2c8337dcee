"""Every update rule against a float64 restatement of its published formula."""

import numpy
import pytest

import renga
from renga import _core, optimizers
from renga.optimizer import FusedRule
from tests.catalogue import OPTIMIZERS
from tests.catalogue.optimizers import ADAM, adam, lamb

STEPS = 20


CASES = [(row, values) for row in OPTIMIZERS.values() for values in row.values]
cases = pytest.mark.parametrize(
    ("row", "values"),
    CASES,
    ids=[f"{row.name}-{i}" for i, (row, _) in enumerate(CASES)],
)


def make_gradients(shape, dtype):
    rng = numpy.random.default_rng(0)
    # Decreasing gradients distinguish AMSGrad's maximum from Adam's mean.
    return [(rng.normal(size=shape) / 2**t).astype(dtype) for t in range(STEPS)]


def run(optimizer, array, grads):
    param = renga.Parameter(array)
    rule = optimizer.create_update_rule()
    for g in grads:
        param.grad = g
        rule.update(param)
    return rule


@cases
@pytest.mark.parametrize(
    ("dtype", "tolerance"), [("f8", 1e-13), ("f4", 1e-5), ("f2", 2e-2)]
)
def test_formula(row, values, dtype, tolerance):
    # Numbers of 16 bits are updated in blocks of 64, and the rest apart.
    x = numpy.linspace(-1, 1, 143).reshape(11, 13).astype(dtype)
    grads = make_gradients(x.shape, dtype)
    exact = x.astype("f8"), [g.astype("f8") for g in grads]
    expected = row.formula(*exact, **values, **row.fixed)
    rule = run(row.kind(**values), x, grads)
    numpy.testing.assert_allclose(x, expected, rtol=tolerance, atol=tolerance)
    assert rule.t == STEPS
    assert all(state.dtype == dtype for state in rule.state.values())


def test_nesterov_takes_the_new_velocity():
    # Steps that Chainer 7.8.1 makes; the paper's formula makes -1.5, -15.25, ...
    x, steps = numpy.zeros(1), []
    rule = optimizers.NesterovAG(lr=1.0, momentum=0.5).create_update_rule()
    param = renga.Parameter(x)
    for g in (1.0, 10.0, 100.0, 0.0):
        before = x[0]
        param.grad = numpy.array([g])
        rule.update(param)
        steps.append(x[0] - before)
    assert steps == [-1.75, -17.625, -176.3125, -13.15625]


@cases
def test_strided_arrays(row, values):
    memory = numpy.zeros((6, 8, 10))
    x = memory[::-2, 1:, ::3].transpose(2, 0, 1)
    x[...] = numpy.linspace(-1, 1, x.size).reshape(x.shape)
    grads = [numpy.asfortranarray(g) for g in make_gradients(x.shape, "f8")]
    expected = row.formula(x.copy(), grads, **values, **row.fixed)
    untouched = memory[:, 0].copy()
    run(row.kind(**values), x, grads)
    numpy.testing.assert_allclose(x, expected, rtol=1e-12)
    numpy.testing.assert_array_equal(memory[:, 0], untouched)


@cases
def test_arrays_divided_among_threads(row, values):
    x = numpy.random.default_rng(1).normal(size=100_003)
    grads = make_gradients(x.shape, "f8")
    expected = row.formula(x, grads, **values, **row.fixed)
    run(row.kind(**values), x, grads)
    numpy.testing.assert_allclose(x, expected, rtol=1e-11, atol=1e-14)


@pytest.mark.parametrize("shape", [(), (0, 3), (1,)])
def test_shapes_at_the_edge(shape):
    x = numpy.full(shape, 2.0)
    run(optimizers.Adam(**ADAM), x, [numpy.ones(shape)])
    expected = adam(numpy.full(shape, 2.0), [1.0], **ADAM)
    numpy.testing.assert_allclose(x, expected, rtol=1e-13)


def test_amsgrad_and_adam_differ():
    grads = make_gradients((4,), "f8")
    with_maximum = adam(1.0, grads, **ADAM, amsgrad=True)
    assert abs(with_maximum - adam(1.0, grads, **ADAM)).max() > 1e-3


def test_bounds_follow_alpha():
    optimizer = optimizers.AdaBound(alpha=0.1, final_lr=0.5, gamma=0.5)
    rule = optimizer.create_update_rule()
    rule.t = 2
    assert rule.bounds == (pytest.approx(0.25), pytest.approx(1.0))
    optimizer.alpha = 0.05
    assert rule.bounds == (pytest.approx(0.125), pytest.approx(0.5))


@pytest.mark.parametrize("optimizer", [optimizers.SGD, optimizers.Adam])
def test_gradient_is_left_as_it_is(optimizer):
    for dtype in ("f4", "f2"):
        grad = numpy.full(3, 0.1, dtype)
        run(optimizer(), numpy.ones(3, dtype), [grad])
        numpy.testing.assert_array_equal(grad, numpy.full(3, 0.1, dtype))


def test_nan_gets_through():
    x = numpy.ones(3)
    run(optimizers.AMSGrad(), x, [numpy.array([1, numpy.nan, 1])])
    numpy.testing.assert_array_equal(numpy.isnan(x), [False, True, False])


def test_rmsprop_refuses_an_eps_that_vanishes():
    x = numpy.ones(3, numpy.float16)
    with pytest.raises(ValueError, match="eps of RMSprop .* float16"):
        run(optimizers.RMSprop(eps=1e-9), x, [x])


def test_every_listed_rule_has_a_case_and_a_docstring():
    rules = [row.kind(**values).create_update_rule() for row, values in CASES]
    tested = [rule.entry for rule in rules if isinstance(rule, FusedRule)]
    for name, entry in _core.optimizers.entries.items():
        assert entry.formula in entry.update.__doc__
        assert entry in tested or name == "lamb_direction"  # which LAMB calls


def test_lamb_of_a_parameter_that_is_zero():
    values = OPTIMIZERS["LAMB"].values[0]
    x, grads = numpy.zeros((3, 4)), make_gradients((3, 4), "f8")
    expected = lamb(x, grads, **values)
    run(optimizers.LAMB(**values), x, grads)
    numpy.testing.assert_allclose(x, expected)


def test_an_sgd_share_of_one_is_momentum_sgd():
    found, grads = [], make_gradients((3, 4), "f8")
    for kind in (optimizers.RMSpropMomentumSGD, optimizers.MomentumSGD):
        found.append(numpy.linspace(-1, 1, 12).reshape(3, 4))
        run(kind(lr=0.1, momentum=0.9), found[-1], grads)
    numpy.testing.assert_allclose(*found, rtol=1e-13)


def test_a_missing_option_is_named():
    x, v = numpy.ones(3), numpy.zeros(3)
    with pytest.raises(AttributeError, match=r"expected 'momentum', got \['lr'\]"):
        _core.optimizers.momentum_sgd(x, x.copy(), {"v": v}, {"lr": 0.1})


def test_the_core_refuses_other_shapes_and_dtypes():
    x = numpy.ones((2, 3), numpy.float32)
    with pytest.raises(renga.utils.type_check.InvalidType, match=r"\(3, 2\)"):
        _core.optimizers.sgd(x, x.reshape(3, 2), {}, {"lr": 0.1})
    with pytest.raises(renga.utils.type_check.InvalidType, match="float64"):
        _core.optimizers.sgd(x, x.astype("f8"), {}, {"lr": 0.1})
    with pytest.raises(renga.utils.type_check.InvalidType, match="int32"):
        _core.optimizers.sgd(x.astype("i4"), x.astype("i4"), {}, {"lr": 0.1})
    x.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        _core.optimizers.sgd(x, x, {}, {"lr": 0.1})
