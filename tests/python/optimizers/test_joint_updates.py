"""Updates of many parameters by one call, against those of each parameter alone."""

import numpy as np
import pytest

import renga
from renga import optimizers as O
from renga.optimizer_hooks import GradientClipping, WeightDecay
from tests.catalogue import OPTIMIZERS

SHAPES = [(3,), (2, 5), (), (0, 4), (33, 17)]


def model(dtype="f"):
    random = np.random.RandomState(0)
    link = renga.Link()
    with link.init_scope():
        for i, shape in enumerate(SHAPES):
            values = np.asarray(random.normal(0, 1, shape), dtype)
            setattr(link, f"p{i}", renga.Parameter(values))
    return link


def step(link, k):
    random = np.random.RandomState(k)
    for param in link.params():
        param.grad = np.asarray(random.normal(0, 1, param.shape), param.dtype)


def alone(param):
    """Makes the update of a parameter one of its own."""
    param.update = lambda: type(param).update(param)


def trained(make, change=lambda link, optimizer: None, dtype="f"):
    """The parameters and states after three updates, joint ones and single ones."""
    found = []
    for is_joint in (True, False):
        link = model(dtype)
        optimizer = make().setup(link)
        change(link, optimizer)
        if not is_joint:
            for param in link.params():
                alone(param)
        for k in range(3):
            step(link, k)
            optimizer.update()
        arrays = renga.serializers.DictionarySerializer()
        arrays.save(optimizer)
        found.append({**arrays.target, **{n: p.array for n, p in link.namedparams()}})
    return found


def assert_same(joint, single):
    assert joint.keys() == single.keys()
    for name, x in joint.items():
        np.testing.assert_array_equal(x, single[name], err_msg=name)


@pytest.mark.parametrize("dtype", ["e", "f", "d"])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_they_have_the_bits_of_single_updates(name, dtype):
    assert_same(*trained(OPTIMIZERS[name].make, dtype=dtype))


CHANGES = {
    "rate of one parameter": lambda link, _: setattr(
        link.p1.update_rule.hyperparam, "lr", 0.01
    ),
    "one rate of several parameters": lambda link, _: [
        setattr(param.update_rule.hyperparam, "lr", 0.01)
        for param in (link.p1, link.p2, link.p4)
    ],
    "frozen": lambda link, _: setattr(link.p1.update_rule, "enabled", False),
    "weight decay": lambda _, optimizer: optimizer.add_hook(WeightDecay(0.1)),
    "clipping": lambda _, optimizer: optimizer.add_hook(GradientClipping(0.5)),
    "hook of one rule that is removed": lambda link, _: (
        link.p1.update_rule.add_hook(lambda rule, param: None, "none"),
        link.p1.update_rule.remove_hook("none"),
    ),
    "hook of one rule": lambda link, _: link.p1.update_rule.add_hook(
        lambda rule, param: np.negative(param.grad, param.grad), "negative"
    ),
    "counts that differ": lambda link, _: setattr(link.p4.update_rule, "t", 7),
    "no rule": lambda link, _: setattr(link.p1, "update_rule", None),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("name", ["MomentumSGD", "Adam"])
def test_what_single_rules_have_of_their_own(name, change):
    assert_same(*trained(OPTIMIZERS[name].make, change))


@pytest.mark.parametrize("of_class", [True, False])
def test_code_of_the_user_runs_in_its_place(of_class):
    """It sees earlier parameters after their updates, later ones before theirs."""
    link = model()
    optimizer = O.SGD(0.1).setup(link)
    before = [param.array.copy() for param in link.params()]
    seen = []

    def update_core_cpu(rule, param):
        seen.extend([p.array.copy() for p in link.params()])

    rule = link.p1.update_rule
    if of_class:
        own = type("Own", (type(rule),), {"update_core_cpu": update_core_cpu})
        link.p1.update_rule = own(optimizer.hyperparam)
    else:
        rule.update_core_cpu = lambda param: update_core_cpu(rule, param)
    step(link, 0)
    optimizer.update()
    names = [name for name, _ in link.namedparams()]
    for i, name in enumerate(names):
        expected = getattr(link, name[1:]).array if name < "/p1" else before[i]
        np.testing.assert_array_equal(seen[i], expected)
    np.testing.assert_array_equal(link.p1.array, before[names.index("/p1")])


def test_updates_that_were_taken_are_made_if_a_later_one_raises():
    link = model()
    optimizer = O.SGD(0.1).setup(link)
    before = link.p0.array.copy()

    def fail(rule, param):
        raise RuntimeError("no")

    link.p4.update_rule.add_hook(fail, "fail")
    step(link, 0)
    with pytest.raises(RuntimeError, match="no"):
        optimizer.update()
    np.testing.assert_allclose(link.p0.array, before - 0.1 * link.p0.grad, 1e-6)
