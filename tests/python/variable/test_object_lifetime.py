"""Objects of the core before __init__, and cycles that the collector frees."""

import gc
import weakref

import numpy as np
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga import _core

USES = {
    "shape": lambda v: v.shape,
    "array": lambda v: v.array,
    "set array": lambda v: setattr(v, "array", np.ones(3)),
    "grad": lambda v: v.grad,
    "operator": lambda v: v + 1,
    "reflected operator": lambda v: np.ones(3) * v,
    "negative": lambda v: -v,
    "function": lambda v: F.relu(v),
    "functions of lists": lambda v: F.concat([v, v]),
    "repr": repr,
    "len": len,
    "iteration": list,
    "item": lambda v: v[0],
    "backward": lambda v: v.backward(),
    "grad()": lambda v: renga.grad([v], [v]),
    "cleargrad": lambda v: v.cleargrad(),
    "node": lambda v: v.node,
}


@pytest.mark.parametrize("use", USES)
def test_use_before_init(use):
    with pytest.raises(RuntimeError, match="__init__"):
        USES[use](renga.Variable.__new__(renga.Variable))


def test_a_subclass_that_forgets_to_call_init():
    class Early(renga.Variable):
        def __init__(self):
            self.extent = self.shape

    with pytest.raises(RuntimeError, match="super"):
        Early()


@pytest.mark.parametrize("name", ["VariableNode", "Node", "NodeLink", "Call"])
def test_other_classes_before_init(name):
    cls = getattr(_core, name)
    for member in vars(cls):
        if isinstance(getattr(cls, member), property):
            with pytest.raises(RuntimeError, match="__init__"):
                getattr(cls.__new__(cls), member)


class Doubled(renga.FunctionNode):
    """A function with a reference to the link that keeps its output."""

    def __init__(self, link):
        self.link = link

    def forward(self, inputs):
        return (inputs[0] * 2,)

    def backward(self, indexes, gys):
        return (gys[0] * 2,)


@pytest.mark.parametrize("operations", [0, 1, 7])
def test_cycles_through_the_graph_are_collected(operations):
    links = []
    for _ in range(5):
        link = L.Linear(3, 3)
        link.y = Doubled(link).apply((link(np.ones((2, 3), "f")),))[0]
        for _ in range(operations):
            link.y = F.relu(link.y)
        links.append(weakref.ref(link))
        del link
    gc.collect()
    assert [link() for link in links] == [None] * 5


def test_referenced_graphs_survive_a_collection():
    link = L.Linear(3, 3, initialW=np.eye(3, dtype="f"))
    link.cleargrads()
    y = Doubled(link).apply((link(np.ones((2, 3), "f")),))[0]
    z = F.sum(F.relu(y))
    del y
    gc.collect()
    z.backward()
    np.testing.assert_array_equal(link.W.grad, 4)


def test_code_that_called_operations_is_freed():
    x = renga.Variable(np.ones(3, "f"))
    freed = []
    for _ in range(3):
        scope = {"x": x}
        exec(compile("def double(): return x * 2", "<generated>", "exec"), scope)
        scope["double"]()
        freed.append(weakref.ref(scope.pop("double").__code__))
    gc.collect()
    assert [code() for code in freed] == [None] * 3


@pytest.mark.parametrize("creator", [1, "f", np.ones(3), object()])
def test_only_functions_create(creator):
    with pytest.raises(TypeError, match="creator"):
        renga.Variable(np.ones(3)).creator = creator


class Derived(renga.Variable):
    """A class of Python."""


@pytest.mark.parametrize("kind", [renga.Variable, renga.Parameter, Derived])
def test_cycles_through_attributes_are_collected(kind):
    class Owner:
        pass

    owner = Owner()
    owner.variable = kind(np.ones(3, "f"))
    owner.variable.owner = owner
    found = weakref.ref(owner)
    del owner
    gc.collect()
    assert found() is None
