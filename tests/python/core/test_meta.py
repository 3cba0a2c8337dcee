"""The device without memory: operations compute shapes and nothing else."""

import numpy as np
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga import _core
from tests.catalogue import CASES


def meta(x, requires_grad=True):
    return _core.empty_variable(x.shape, x.dtype.name, "meta", requires_grad)


def variables_in(y):
    return y if isinstance(y, (list, tuple)) else [y]


class Everywhere:
    """A placement that computes nothing here."""

    def __call__(self, call):
        call.run_shapes()


@pytest.mark.parametrize("name", CASES)
def test_every_operation_has_the_shapes_and_dtypes_of_the_host(name):
    for case in CASES[name]:
        check_shapes(case)


def check_shapes(case):
    random = np.random.RandomState(0)
    arrays = [
        np.asarray(random.uniform(case.low, case.high, shape)).astype("f")
        for shape in case.shapes
    ]
    expected = variables_in(case.call(_core.ops, *map(_core.Variable, arrays)))
    _core.set_around_call(Everywhere())
    try:
        found = variables_in(case.call(_core.ops, *map(_core.Variable, arrays)))
    finally:
        _core.set_around_call(None)
    assert [(y.shape, y.dtype) for y in found] == [(y.shape, y.dtype) for y in expected]
    assert all(isinstance(y, np.ndarray) or y.is_meta for y in found)


def test_a_network_and_its_gradients_without_elements():
    model = renga.Sequential(
        L.Convolution2D(3, 4, 3, pad=1),
        L.BatchNormalization(4),
        F.relu,
        L.Linear(256, 5),
    )
    model(np.zeros((2, 3, 8, 8), "f"))
    for param in model.params():
        param.move_to("meta:0")
    x = meta(np.empty((2, 3, 8, 8), "f"))
    _core.set_around_call(Everywhere())
    try:
        loss = F.softmax_cross_entropy(model(x), np.zeros(2, "i"))
    finally:
        _core.set_around_call(None)
    loss.backward()
    assert loss.is_meta and loss.shape == ()
    for param in model.params():
        assert param.grad_var.is_meta and param.grad_var.shape == param.shape
    gradient_of_input = renga.grad([loss], [x])[0]
    assert gradient_of_input.is_meta and gradient_of_input.shape == x.shape


@pytest.mark.parametrize(
    "read", [lambda x: x.array, lambda x: x.data, repr, np.asarray]
)
def test_elements_cannot_be_read(read):
    with pytest.raises(RuntimeError, match="shape and a dtype only"):
        read(meta(np.zeros((1,), "f")))


def test_huge_arrays_take_no_memory():
    before = renga.memory.stats()["in_use"]
    x = meta(np.broadcast_to(np.float32(0), (1 << 20, 1 << 20)))
    y = F.relu(x + x)
    assert y.shape == (1 << 20, 1 << 20) and y.is_meta
    assert renga.memory.stats()["in_use"] == before
