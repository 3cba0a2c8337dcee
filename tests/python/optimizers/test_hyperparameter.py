"""Hyperparameters: inheritance of values."""

import copy
import pickle

import pytest

from renga import Parameter, optimizers
from renga.optimizer import Hyperparameter


def test_child_reads_its_parent():
    parent = Hyperparameter()
    parent.lr = 0.1
    child = Hyperparameter(parent)
    assert child.lr == 0.1
    parent.lr = 0.2
    assert child.lr == 0.2
    child.lr = 0.3
    assert (parent.lr, child.lr) == (0.2, 0.3)
    assert child.parent is parent
    assert parent.parent is None


def test_dict_and_text_hold_every_value():
    parent = Hyperparameter()
    parent.b, parent.a = 1, 2
    child = Hyperparameter(parent)
    child.b = 3
    assert child.get_dict() == {"a": 2, "b": 3}
    assert repr(child) == "Hyperparameter(a=2, b=3)"


def test_missing_value():
    with pytest.raises(AttributeError, match="momentum"):
        Hyperparameter(Hyperparameter()).momentum  # noqa: B018


@pytest.mark.parametrize(
    "duplicate", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))]
)
def test_copies(duplicate):
    parent = Hyperparameter()
    parent.lr = 0.1
    assert duplicate(Hyperparameter(parent)).lr == 0.1


def test_proxy_is_an_attribute_of_the_optimizer():
    optimizer = optimizers.Adam(alpha=0.5)
    assert optimizer.alpha == optimizer.hyperparam.alpha == 0.5
    optimizer.alpha = 0.25
    assert optimizer.hyperparam.alpha == 0.25
    with pytest.raises(AttributeError):
        optimizer.momentum  # noqa: B018


def test_one_parameter_may_differ():
    optimizer = optimizers.SGD(lr=0.1)
    param = Parameter(0.0, (1,))
    param.update_rule = optimizer.create_update_rule()
    param.update_rule.hyperparam.lr = 1.0
    param.grad = param.array + 1
    optimizer.lr = 5.0
    param.update()
    assert param.array[0] == -1.0


def test_learning_rate_of_adam():
    optimizer = optimizers.Adam(alpha=0.5, beta1=0.5, beta2=0.75)
    with pytest.raises(RuntimeError, match="have not been started"):
        optimizer.lr  # noqa: B018
    optimizer.t = 1
    assert optimizer.lr == optimizer.alpha_t == pytest.approx(0.5 * 0.5 / 0.5)


@pytest.mark.parametrize(
    ("optimizer", "amsgrad", "adabound"),
    [
        (optimizers.Adam, False, False),
        (optimizers.AMSGrad, True, False),
        (optimizers.AdaBound, False, True),
        (optimizers.AMSBound, True, True),
    ],
)
def test_variants_of_adam(optimizer, amsgrad, adabound):
    made = optimizer()
    assert (made.amsgrad, made.adabound) == (amsgrad, adabound)
