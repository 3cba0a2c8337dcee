"""Stacks of recurrent layers over sequences, against one step after the other."""

import numpy
import pytest

import renga
import renga.links as L
from tests.catalogue.links.n_step_rnn import KINDS, XS, rng


@pytest.mark.parametrize("name", KINDS)
def test_attributes(name):
    link = getattr(L, name)(2, 3, 5, 0.25)
    directions = KINDS[name][1]
    assert link.use_bi_direction == (directions == 2)
    assert (link.n_layers, link.direction) == (2, directions)
    assert (link.dropout, link.out_size) == (0.25, 5)
    assert link.n_cells == (2 if "LSTM" in name else 1)
    half = link.n_weights // 2
    shapes = [[w.shape for w in layer] for layer in link.ws]
    first, above = (5, 3), (5, 5 * directions)
    expected = [[first] * half + [(5, 5)] * half] * directions
    assert shapes == expected + [[above] * half + [(5, 5)] * half] * directions
    assert not any(b.array.any() for layer in link.bs for b in layer)
    h = link.init_hx([numpy.zeros((1, 3), "e")] * 4)
    assert h.shape == (2 * directions, 4, 5) and h.dtype == numpy.float16
    assert not h.array.any()


def test_weights_are_those_of_a_copy():
    link = L.NStepGRU(1, 3, 2, 0.0)
    for clone in (link.copy(), link.copy("copy")):
        assert clone.ws[0][0] is clone[0].w0
        assert clone.ws[0][0] is not link[0].w0


def test_initial_values():
    link = L.NStepLSTM(1, 3, 2, 0.0, initialW=2, initial_bias=3)
    assert all((w.array == 2).all() for w in link.ws[0])
    assert all((b.array == 3).all() for b in link.bs[0])


def test_dropout_is_between_the_layers():
    numpy.random.seed(0)
    xs = [x.astype("f") for x in XS]
    one, two = (L.NStepRNNTanh(n, 3, 4, 0.5) for n in (1, 2))
    for link, varies in ((one, False), (two, True)):
        first, second = (link(None, xs)[0].array for _ in range(2))
        assert (first[-1] != second[-1]).any() == varies
        with renga.using_config("train", False):
            first, second = (link(None, xs)[0].array for _ in range(2))
        numpy.testing.assert_array_equal(first, second)


def test_rnn_may_be_replaced():
    class Zeros(L.NStepRNNTanh):
        def rnn(self, n_layers, dropout, hx, ws, bs, xs):
            return hx, [x[:, :1] * 0 for x in xs]

    _, ys = Zeros(1, 3, 2, 0.0)(None, [x.astype("f") for x in XS])
    assert [y.shape for y in ys] == [(2, 1), (4, 1), (3, 1)]


def test_arguments():
    xs = [x.astype("f") for x in XS]
    for wrong in ({"use_cudnn": True}, {"use_bi_direction": True}):
        with pytest.raises(ValueError):
            L.NStepGRU(1, 3, 2, 0.0, **wrong)
    with pytest.raises(TypeError):
        L.NStepGRU(1, 3, 2, 0.0, nonsense=1)
    link = L.NStepLSTM(1, 3, 2, 0.0)
    with pytest.raises(ValueError, match="using_config"):
        link(None, None, xs, train=True)
    with pytest.raises(TypeError):
        link(None, None, xs, nonsense=True)
    with pytest.raises(AssertionError, match="list of sequences"):
        link(None, None, xs[0])


@pytest.mark.parametrize("name", KINDS)
def test_sequences_of_no_steps_alone(name):
    directions = KINDS[name][1]
    link = getattr(L, name)(2, 3, 4, 0.0)
    nothing = numpy.zeros((0, 3), "f")
    for xs in ([], [nothing], [nothing, nothing]):
        shape = (2 * directions, len(xs), 4)
        given = [rng.normal(size=shape).astype("f") for _ in range(link.n_cells)]
        for states in (given, [None] * link.n_cells):
            *last, ys = link(*states, xs)
            assert [y.shape for y in ys] == [(0, 4 * directions)] * len(xs)
            for h, state in zip(last, states):
                expected = numpy.zeros(shape) if state is None else state
                numpy.testing.assert_array_equal(h.array, expected)


@pytest.mark.parametrize("name", KINDS)
def test_sequences_of_no_steps_among_others(name):
    """Each sequence's states and outputs are those that it has alone."""
    directions = KINDS[name][1]
    link = getattr(L, name)(2, 3, 4, 0.0)
    xs = [rng.normal(size=(n, 3)).astype("f") for n in (0, 2, 0, 3)]
    shape = (2 * directions, len(xs), 4)
    given = [rng.normal(size=shape).astype("f") for _ in range(link.n_cells)]
    *last, ys = link(*given, xs)
    for k, x in enumerate(xs):
        *alone, (y,) = link(*[h[:, k : k + 1] for h in given], [x])
        numpy.testing.assert_allclose(ys[k].array, y.array, 1e-5, 1e-6)
        for h, expected in zip(last, alone):
            numpy.testing.assert_allclose(
                h.array[:, k], expected.array[:, 0], 1e-5, 1e-6
            )


def test_gradients_of_states_go_past_sequences_of_no_steps():
    link = L.NStepGRU(1, 3, 2, 0.0)
    h = renga.Variable(rng.normal(size=(1, 1, 2)).astype("f"))
    last, _ = link(h, [numpy.zeros((0, 3), "f")])
    renga.functions.sum(last * last).backward()
    numpy.testing.assert_allclose(h.grad, 2 * h.array)


class CalledFunctions(renga.FunctionHook):
    """Collects the names of functions."""

    def __init__(self):
        self.names = []

    def forward_preprocess(self, function, inputs):
        self.names.append(function.label)


@pytest.mark.parametrize("lengths, are_sorted", [((3, 2, 2), True), ((2, 3, 2), False)])
def test_states_of_sorted_sequences_stay_as_they_are(lengths, are_sorted):
    link = L.NStepLSTM(1, 3, 2, 0.0)
    xs = [rng.standard_normal((n, 3)).astype("f") for n in lengths]
    hx, cx = rng.standard_normal((2, 1, 3, 2)).astype("f")
    with CalledFunctions() as called:
        hy, cy, _ = link(hx, cx, xs)
    permutations = called.names.count("take")
    assert permutations == (0 if are_sorted else 4)
    for k in range(3):
        h, c, _ = link(hx[:, k : k + 1], cx[:, k : k + 1], [xs[k]])
        numpy.testing.assert_allclose(hy.array[:, k], h.array[:, 0], rtol=1e-5)
        numpy.testing.assert_allclose(cy.array[:, k], c.array[:, 0], rtol=1e-5)


@pytest.mark.parametrize("lengths", [(3, 2), (2, 3)])
def test_states_of_more_sequences_are_refused(lengths):
    link = L.NStepGRU(1, 3, 2, 0.0)
    xs = [numpy.zeros((n, 3), "f") for n in lengths]
    expected = r"NStepGRU: expected states of 2 sequences, got shape \(1, 3, 2\)"
    with pytest.raises(renga.utils.type_check.InvalidType, match=expected):
        link(numpy.zeros((1, 3, 2), "f"), xs)
