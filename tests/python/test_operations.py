"""From calls and graph nodes to the list entries of their operations."""

import numpy
import pytest

import renga
import renga.functions as F
from renga import Variable, _core
from renga.core.operations import operation_name, operation_of
from tests.catalogue import CASES, CATALOGUE

DIFFERENTIABLE = [name for name, cases in CASES.items() if cases[0].orders]


def variable(*shape):
    return Variable(numpy.random.RandomState(0).uniform(0.5, 0.8, shape).astype("f"))


class Names(renga.FunctionHook):
    name = "names"

    def __init__(self):
        self.found = []

    def forward_postprocess(self, function, in_data):
        self.found.append(operation_name(function))


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_graph_nodes(name):
    case = CASES[name][0]
    y = case.call(_core.ops, *(variable(*shape) for shape in case.shapes))
    node = (y[0] if isinstance(y, list) else y).creator_node
    assert operation_name(node) == (CATALOGUE[name].node or name)


def test_operators():
    x = variable(2, 2)
    with Names() as names:
        results = [x + x, x - x, 2 * x, 1 / x, 1 // x, x**3, x @ x, -x, abs(x)]
    expected = (
        "add subtract multiply divide floor_divide power matmul negative absolute"
    )
    assert names.found == expected.split()
    nodes = [y.creator_node for y in results if y.creator_node is not None]
    assert [operation_name(node) for node in nodes] == [
        name for name in names.found if name != "floor_divide"
    ]


def test_functions_that_are_not_listed():
    class relu(renga.FunctionNode):
        def forward(self, inputs):
            return inputs

    (y,) = relu().apply((variable(2),))
    assert operation_of(y.creator_node) is None
    assert operation_name(y.creator_node) == "relu"
    x = variable(2)
    (gx,) = renga.grad([F.tanh(x)], [x], enable_double_backprop=True)
    assert operation_of(gx.creator_node) is None
    assert operation_name(gx.creator_node) == "TanhGrad"
