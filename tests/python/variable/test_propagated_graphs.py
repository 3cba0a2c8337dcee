"""What an update frees of the graphs that backward() has propagated through."""

import re

import numpy
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga import computational_graph

X = numpy.array([[1, 2, 3], [4, 5, 6]], "f")


def in_use():
    return renga.memory.stats()["in_use"]


@pytest.fixture
def model():
    link = L.Linear(3, 2, initialW=numpy.ones((2, 3), "f"))
    link.cleargrads()
    # Updates of 0: gradients before and after an update are the same.
    return link, renga.optimizers.SGD(0).setup(link)


def gradient(link):
    """The gradient of W in a backward pass of sum(y): the sums of the columns of x."""
    return numpy.broadcast_to(X.sum(0), link.W.shape)


def test_memory_of_a_loss_that_is_kept(model):
    link, optimizer = model
    x = numpy.ones((4096, 3), "f")
    before = in_use()
    hidden = 4096 * 2 * 4

    loss = F.sum(F.exp(F.exp(F.exp(link(x)))))
    loss.backward()
    assert in_use() >= before + 3 * hidden
    optimizer.update()
    assert in_use() < before + hidden
    assert loss.array > 0


def test_second_pass_before_the_update(model):
    link, optimizer = model
    loss = F.sum(link(X))
    link.cleargrads()
    loss.backward()
    loss.backward()
    numpy.testing.assert_array_equal(link.W.grad, 2 * gradient(link))


@pytest.mark.parametrize("joint", [False, True], ids=["one output", "several outputs"])
def test_second_pass_after_the_update(model, joint):
    link, optimizer = model
    y = link(X)
    loss = sum(map(F.sum, F.split_axis(y, 2, 0))) if joint else F.sum(y)
    del y
    loss.backward()
    optimizer.update()
    with pytest.raises(RuntimeError, match=r"freed then.*\n *in the backward of "):
        loss.backward()


def test_pass_through_a_new_loss_after_the_update(model):
    link, optimizer = model
    loss = F.sum(link(X))
    loss.backward()
    optimizer.update()
    with pytest.raises(RuntimeError, match="freed then"):
        (2 * loss).backward()


@pytest.mark.parametrize("holds", ["output", "second loss", "both"])
def test_shared_part_of_two_losses(model, holds):
    link, optimizer = model
    y = F.relu(link(X))
    first, second = F.sum(y), F.sum(3 * y)
    if holds == "output":
        del second
    elif holds == "second loss":
        del y
    first.backward()
    optimizer.update()
    link.cleargrads()
    (F.sum(3 * y) if holds == "output" else second).backward()
    numpy.testing.assert_array_equal(link.W.grad, 3 * gradient(link))


def test_losses_of_several_passes(model):
    link, optimizer = model
    y = F.relu(link(X))
    losses = [F.sum(y), F.sum(3 * y)]
    del y
    for loss in losses:
        loss.backward()
    optimizer.update()
    for loss in losses:
        with pytest.raises(RuntimeError, match="freed then"):
            loss.backward()


def test_two_passes_from_one_of_two_outputs(model):
    link, optimizer = model
    loss, other = F.split_axis(F.sum(link(X), axis=0), 2, 0)
    loss.backward()
    loss.backward()
    optimizer.update()
    link.cleargrads()
    other.backward()
    numpy.testing.assert_array_equal(link.W.grad, [[0, 0, 0], X.sum(0)])


def test_passes_without_an_update(model):
    link, _ = model
    for _ in range(1000):
        F.sum(link(X)).backward()
    before = renga.memory.stats()["in_use"]
    for _ in range(1000):
        F.sum(link(X)).backward()
    assert renga.memory.stats()["in_use"] == before


def test_sum_that_was_computed_before(model):
    link, optimizer = model
    loss = F.sum(link(X))
    total = 2 * loss
    loss.backward()
    optimizer.update()
    link.cleargrads()
    total.backward()
    numpy.testing.assert_array_equal(link.W.grad, 2 * gradient(link))


@pytest.mark.parametrize(
    "options", [{"retain_grad": True}, {"enable_double_backprop": True}]
)
def test_options_that_keep_the_graph(model, options):
    link, optimizer = model
    loss = F.sum(link(X))
    loss.backward(**options)
    optimizer.update()
    link.cleargrads()
    loss.backward()
    numpy.testing.assert_array_equal(link.W.grad, gradient(link))


def test_a_given_gradient_keeps_the_graph(model):
    link, optimizer = model
    y = link(X)
    for scale in 1, -2:
        y.grad = numpy.full(y.shape, scale, "f")
        link.cleargrads()
        y.backward()
        optimizer.update()
        numpy.testing.assert_array_equal(link.W.grad, scale * gradient(link))


def test_update_that_is_skipped_keeps_the_graph(model):
    link, optimizer = model
    optimizer.loss_scaling()
    loss = F.sum(link(X))
    loss.backward()
    link.W.grad[0] = numpy.inf
    optimizer.update()
    link.cleargrads()
    loss.backward()
    numpy.testing.assert_array_equal(link.W.grad, gradient(link))


def drawn(loss):
    """The graph, whose nodes have numbers in the order of their first occurrence."""
    text = computational_graph.build_computational_graph([loss]).dump()
    numbers: dict[str, int] = {}
    return re.sub(
        r"\d{6,}", lambda found: str(numbers.setdefault(found[0], len(numbers))), text
    )


def test_graph_can_be_drawn_after_the_update(model):
    link, optimizer = model
    loss = F.sum(F.relu(link(X)))
    before = drawn(loss)
    loss.backward()
    optimizer.update()
    after = drawn(loss)
    assert "ReLU" in before
    assert after == before


def test_functions_in_python_keep_what_they_retained(model):
    class Double(renga.FunctionNode):
        def forward(self, inputs):
            return (2 * inputs[0],)

        def backward(self, indexes, grads):
            return (2 * grads[0],)

    link, optimizer = model
    loss = F.sum(Double().apply((link(X),))[0])
    loss.backward()
    numpy.testing.assert_array_equal(link.W.grad, 2 * gradient(link))
    optimizer.update()
    with pytest.raises(RuntimeError, match="freed then"):
        loss.backward()
