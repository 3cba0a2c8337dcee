"""Recurrent cells against NumPy, a step at a time."""

import numpy
import pytest

import renga
import renga.links as L
from renga import Variable
from tests.catalogue.links.rnn import C, H, X, rng


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
        ((None, c, None, h, None), (0 * c, c, 0 * h, h, 0 * x)),
    ):
        for y, e in zip(link(*given), link(*zeros)):
            numpy.testing.assert_allclose(y.array, e.array, rtol=1e-6)
    with pytest.raises(ValueError, match="expected x or a state"):
        link(*[None] * 5)


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
