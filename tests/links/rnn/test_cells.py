"""Recurrent cells against NumPy, a step at a time."""

import numpy
import pytest

import renga
import renga.links as L
from renga import Variable
from tests.links.cases.link_check import Case, check

rng = numpy.random.default_rng(0)
X = tuple(rng.normal(size=(3, 4, 3)))
SHRINKING = (X[0], X[1][:3], X[2][:1])
C, H, G = rng.normal(size=(3, 4, 2))


def sigmoid(x):
    return 1 / (1 + numpy.exp(-x))


def linear(p, name, x):
    return x @ p[f"/{name}/W"].T + p.get(f"/{name}/b", 0)


def lstm_step(p, c, h, x):
    gates = linear(p, "upward", x) + linear(p, "lateral", h)
    a, i, f, o = (gates[:, k::4] for k in range(4))
    c = numpy.tanh(a) * sigmoid(i) + c * sigmoid(f)
    return c, numpy.tanh(c) * sigmoid(o)


def lstm(p, *xs):
    """The state of finished samples is unchanged."""
    c, h = numpy.zeros((2, len(xs[0]), 2))
    ys = []
    for x in xs:
        n = len(x)
        c_new, y = lstm_step(p, c[:n], h[:n], x)
        c, h = (numpy.concatenate(pair) for pair in ((c_new, c[n:]), (y, h[n:])))
        ys.append(y)
    return *ys, c, h


def peephole(p, *xs):
    c, h = numpy.zeros((2, len(xs[0]), 2))
    ys = []
    for x in xs:
        gates = linear(p, "upward", x) + linear(p, "lateral", h)
        a, i, f, o = (gates[:, k::4] for k in range(4))
        keep, take = sigmoid(f + linear(p, "peep_f", c)), i + linear(p, "peep_i", c)
        c = keep * c + sigmoid(take) * numpy.tanh(a)
        h = sigmoid(o + linear(p, "peep_o", c)) * numpy.tanh(c)
        ys.append(h)
    return ys


def gru_step(p, h, x):
    r = sigmoid(linear(p, "W_r", x) + linear(p, "U_r", h))
    z = sigmoid(linear(p, "W_z", x) + linear(p, "U_z", h))
    return (1 - z) * h + z * numpy.tanh(linear(p, "W", x) + linear(p, "U", r * h))


def gru(p, first, *xs):
    """Before the first step there is no state, nor its layer."""
    h = sigmoid(linear(p, "W_z", first)) * numpy.tanh(linear(p, "W", first))
    ys = [h]
    for x in xs:
        ys.append(gru_step(p, ys[-1], x))
    return ys


def mgu_step(p, h, x):
    f = sigmoid(linear(p, "W_f", numpy.hstack([h, x])))
    return (1 - f) * h + f * numpy.tanh(linear(p, "W_h", numpy.hstack([f * h, x])))


def mgu(p, *xs):
    ys = [numpy.zeros((len(xs[0]), 2))]
    for x in xs:
        ys.append(mgu_step(p, ys[-1], x))
    return ys[1:]


def tree(cs, a, i, o, fs):
    c = numpy.tanh(a) * sigmoid(i) + sum(c * sigmoid(f) for c, f in zip(cs, fs))
    return c, numpy.tanh(c) * sigmoid(o)


def child_sum_tree(p, *inputs):
    *states, x = inputs
    cs, hs = states[: len(states) // 2], states[len(states) // 2 :]
    gates = numpy.split(linear(p, "W_x", x), 4, 1)
    inner = numpy.split(linear(p, "W_h_aio", sum(hs, numpy.zeros((4, 2)))), 3, 1)
    fs = [gates[3] + linear(p, "W_h_f", h) for h in hs]
    return tree(cs, *(g + h for g, h in zip(gates, inner)), fs)


def nary_tree(p, *inputs):
    *states, x = inputs
    n = len(states) // 2
    gates = linear(p, "W_x", x)
    for k, h in enumerate(states[n:], 1):
        gates = gates + linear(p, f"W_h{k}", h)
    a, i, o, *fs = numpy.split(gates, 3 + n, 1)
    return tree(states[:n], a, i, o, fs)


def through(link, *xs):
    link.reset_state()
    return tuple(link(x) for x in xs)


def through_lstm(link, *xs):
    return *through(link, *xs), link.c, link.h


def outside_training(link, *xs):
    with renga.using_config("train", False):
        return through_lstm(link, *xs)


def sequence(cls, reference, lazily=True):
    lazy = (lambda: cls(None, 2)) if lazily else None
    return Case(lambda: cls(3, 2), X, reference, through, lazy)


CASES = {
    "LSTM": Case(
        lambda: L.LSTM(3, 2), SHRINKING, lstm, through_lstm, lambda: L.LSTM(2)
    ),
    "StatelessLSTM": Case(
        lambda: L.StatelessLSTM(3, 2),
        (C, H, X[0]),
        lstm_step,
        lazy=lambda: L.StatelessLSTM(None, 2),
    ),
    "StatelessLSTM with one output for all samples": Case(
        lambda: L.StatelessLSTM(3, 2), (C, H[:1], X[0]), lstm_step
    ),
    "StatelessLSTM without a state": Case(
        lambda: L.StatelessLSTM(3, 2),
        (X[0],),
        lambda p, x: lstm_step(p, 0 * C, 0 * H, x),
        lambda link, x: link(None, None, x),
        gradients=False,  # no gradient reaches the lateral layer
    ),
    "StatefulZoneoutLSTM outside training": Case(
        lambda: L.StatefulZoneoutLSTM(3, 2),
        X,
        lstm,
        outside_training,
        lambda: L.StatefulZoneoutLSTM(None, 2),
    ),
    "StatefulPeepholeLSTM": sequence(L.StatefulPeepholeLSTM, peephole),
    "GRU": sequence(L.GRU, gru),
    "StatefulGRU": sequence(L.StatefulGRU, gru),
    "StatelessGRU": Case(
        lambda: L.StatelessGRU(3, 2),
        (H, X[0]),
        gru_step,
        lazy=lambda: L.StatelessGRU(None, 2),
    ),
    "StatefulMGU": sequence(L.StatefulMGU, mgu, lazily=False),
    "StatelessMGU": Case(lambda: L.StatelessMGU(3, 2), (H, X[0]), mgu_step),
    "ChildSumTreeLSTM": Case(
        lambda: L.ChildSumTreeLSTM(3, 2),
        (C, G, H, H + G, X[0]),
        child_sum_tree,
        lazy=lambda: L.ChildSumTreeLSTM(None, 2),
    ),
    "ChildSumTreeLSTM of a leaf": Case(
        lambda: L.ChildSumTreeLSTM(3, 2), (X[0],), child_sum_tree, gradients=False
    ),
    "NaryTreeLSTM": Case(
        lambda: L.NaryTreeLSTM(3, 2, 3),
        (C, G, H, H, G, C, X[0]),
        nary_tree,
        lazy=lambda: L.NaryTreeLSTM(None, 2, 3),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_link(name):
    check(CASES[name])


def floats(x):
    return x.astype("f")


@pytest.mark.parametrize(
    "make", [lambda: L.ChildSumTreeLSTM(3, 2), lambda: L.NaryTreeLSTM(3, 2)]
)
def test_child_that_is_not_there_has_a_state_of_zeros(make):
    link = make()
    c, h, x = map(floats, (C, H, X[0]))
    for given, zeros in (
        ((c, None, h, None, x), (c, 0 * c, h, 0 * h, x)),
        ((None, c, None, h, x), (0 * c, c, 0 * h, h, x)),
        ((c, None, h, h, x), (c, 0 * c, h, h, x)),
        ((None, None, None, None, x), (0 * c, 0 * c, 0 * h, 0 * h, x)),
    ):
        for y, e in zip(link(*given), link(*zeros)):
            numpy.testing.assert_allclose(y.array, e.array, rtol=1e-6)


def test_wrong_children():
    x = floats(X[0])
    for link, inputs in (
        (L.ChildSumTreeLSTM(3, 2), (floats(C), x)),
        (L.NaryTreeLSTM(3, 2), (x,)),
        (L.NaryTreeLSTM(3, 2), (None, None, x)),
    ):
        with pytest.raises(AssertionError):
            link(*inputs)
    with pytest.raises(AssertionError):
        L.NaryTreeLSTM(3, 2, 0)


STATEFUL = {
    L.LSTM: ("c", "h"),
    L.StatefulZoneoutLSTM: ("c", "h"),
    L.GRU: ("h",),
    L.StatefulMGU: ("h",),
}


@pytest.mark.parametrize("cls", STATEFUL)
def test_state_is_set_moved_and_forgotten(cls):
    link, names = cls(3, 2), STATEFUL[cls]
    states = [Variable(floats(s)) for s in (C, H)[: len(names)]]
    link.set_state(*states)
    assert all(getattr(link, n) is s for n, s in zip(names, states))
    link.to_device("@numpy")
    with renga.using_config("train", False):
        link(floats(X[0]))
        assert all(getattr(link, n) is not s for n, s in zip(names, states))
        clone = link.copy()
        assert all(getattr(clone, n) is getattr(link, n) for n in names)
    link.reset_state()
    assert all(getattr(link, n) is None for n in names)
    with pytest.raises(AssertionError, match="Variable"):
        link.set_state(*(s.array for s in states))


def test_state_moves_with_the_link():
    class Visitor(renga.device_resident.DeviceResidentsVisitor):
        def __init__(self):
            self.seen = []

        def visit_device_resident(self, resident):
            pass

        def visit_variable(self, variable):
            self.seen.append(variable)

    link = L.StatefulPeepholeLSTM(3, 2)
    link(floats(X[0]))
    visitor = Visitor()
    link.device_resident_accept(visitor)
    assert any(v is link.c for v in visitor.seen)
    assert any(v is link.h for v in visitor.seen)


def test_lstm_with_a_batch_that_grows():
    link = L.LSTM(3, 2)
    link(floats(X[0][:2]))
    with pytest.raises(TypeError, match="at most 2 samples"):
        link(floats(X[0]))


def test_lstm_with_no_sample_left():
    link = L.LSTM(3, 2)
    link(floats(X[0]))
    h = link.h.array
    assert link(floats(X[0][:0])).shape == (0, 2)
    numpy.testing.assert_array_equal(link.h.array, h)


def test_zoneout_keeps_old_values():
    numpy.random.seed(0)
    link = L.StatefulZoneoutLSTM(1, 400, c_ratio=0.2, h_ratio=0.6)
    c, h = rng.normal(size=(2, 10, 400)).astype("f")
    link.set_state(Variable(c), Variable(h))
    link(numpy.ones((10, 1), "f"))
    numpy.testing.assert_allclose((link.c.array == c).mean(), 0.2, atol=0.03)
    numpy.testing.assert_allclose((link.h.array == h).mean(), 0.6, atol=0.03)


def test_initial_values_of_the_gates():
    link = L.LSTM(None, 2, lateral_init=1, upward_init=2, bias_init=3)
    link(floats(X[0]))
    assert (link.lateral.W.array == 1).all() and (link.upward.W.array == 2).all()
    assert link.upward.b.array.tolist() == [3, 3, 1, 3] * 2
    shapes = []
    L.LSTM(3, 2, lambda a: shapes.append(a.shape), forget_bias_init=4)
    assert shapes == [(2, 2)] * 4


def test_arguments():
    x = floats(X[0])
    for args in ((), (x, x), (x, x, x)):
        with pytest.raises(ValueError, match=f"got {len(args)}"):
            L.GRU(3, 2)(*args)
    with pytest.raises(ValueError, match="using_config"):
        L.StatefulZoneoutLSTM(3, 2, train=True)
    with pytest.raises(TypeError):
        L.StatefulZoneoutLSTM(3, 2, nonsense=True)
    assert L.StatelessGRU(3, 2, 1, 2, 3).U_r.b.array.tolist() == [3, 3]
    assert L.GRU(3, 2, 1, 2).U_r.W.array.tolist() == [[2, 2], [2, 2]]
