"""The graph behind variables, as DOT."""

import re

import numpy
import pytest

import renga
import renga.functions as F
from renga import Variable
from renga.computational_graph import DotNode, build_computational_graph


def labels_and_edges(text):
    """Labels by number, and edges as pairs of labels."""
    labels = dict(re.findall(r'(\d+) \[label="([^"]*)"', text))
    edges = re.findall(r"(\d+) -> (\d+);", text)
    return sorted(labels.values()), sorted((labels[a], labels[b]) for a, b in edges)


@pytest.fixture
def loss():
    x = Variable(numpy.ones((2, 3), "f"), name="x")
    W = renga.Parameter(numpy.ones((4, 3), "f"), name="W")
    return F.sum(F.linear(x, W))


def test_nodes_and_edges(loss):
    text = build_computational_graph([loss]).dump()
    assert text.startswith("digraph graphname{rankdir=TB;") and text.endswith("}")
    labels, edges = labels_and_edges(text)
    x, W, y = "x: (2, 3), float32", "W: (4, 3), float32", "(2, 4), float32"
    assert labels == sorted([x, W, y, "float32", "LinearFunction", "Sum"])
    assert edges == sorted(
        [
            (x, "LinearFunction"),
            (W, "LinearFunction"),
            ("LinearFunction", y),
            (y, "Sum"),
            ("Sum", "float32"),
        ]
    )


def test_a_node_shared_by_branches_is_drawn_once():
    x = Variable(numpy.ones(2))
    y = F.exp(x)
    graph = build_computational_graph([y + x, y * x])
    labels, edges = labels_and_edges(graph.dump())
    assert labels.count("exp") == 1
    assert edges.count(("(2), float64", "_ + _")) == 2
    assert len(graph.nodes) == 7 and len(graph.edges) == 8


def test_without_variables(loss):
    graph = build_computational_graph([loss], remove_variable=True)
    labels, edges = labels_and_edges(graph.dump())
    assert labels == ["LinearFunction", "Sum"]
    assert edges == [("LinearFunction", "Sum")]


def test_from_a_vertex_and_python_functions():
    class Twice(renga.FunctionNode):
        def forward(self, inputs):
            return (inputs[0] * 2,)

    (y,) = Twice().apply((Variable(numpy.ones(2)),))
    for output in (y, y.node, y.creator_node):
        labels, _ = labels_and_edges(build_computational_graph([output]).dump())
        assert "Twice" in labels


def test_styles(loss):
    text = build_computational_graph(
        [loss],
        variable_style={"shape": "box", "color": "red"},
        function_style={"fontsize": 9},
        rankdir="LR",
        show_name=False,
    ).dump()
    assert "rankdir=LR" in text
    assert 'label="(2, 3), float32",shape="box",color="red"' in text
    assert 'label="Sum",shape="record",fontsize="9"' in text
    assert DotNode(loss.creator_node, {"a": 'say "x"'}).label.endswith(
        '[label="Sum",a="say \\"x\\""];'
    )


def test_wrong_options(loss):
    with pytest.raises(ValueError):
        build_computational_graph([loss], rankdir="XX")
    with pytest.raises(ValueError):
        build_computational_graph([loss], remove_split=False)
    with pytest.raises(NotImplementedError):
        build_computational_graph([loss]).dump("svg")


def test_a_deep_graph_does_not_recurse():
    x = Variable(numpy.ones(1))
    y = x
    for _ in range(3000):
        y = y + 1
    assert len(build_computational_graph([y]).nodes) == 6001
