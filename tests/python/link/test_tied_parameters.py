"""Links whose parameters or children have several names."""

import copy

import numpy
import pytest

import renga
import renga.functions as F
import renga.links as L

X = numpy.arange(6, dtype="d").reshape(2, 3) / 5


class Tied(renga.Chain):
    """``b`` has the weight of ``a``, ``c`` is ``a``, and ``rows`` has it twice."""

    def __init__(self):
        super().__init__()
        with self.init_scope(), renga.using_config("dtype", numpy.float64):
            self.a = L.Linear(3, 3, initialW=0.5, nobias=True)
            self.b = L.Linear(3, 3, initial_bias=0.1)
            self.c = self.a
            self.rows = renga.Sequential(self.a, F.tanh, self.a, L.Linear(3, 2))
        with self.b.init_scope():
            self.b.W = self.a.W

    def forward(self, x):
        return F.sum(self.rows(self.c(F.tanh(self.b(x)))) ** 2)


def assert_tied(link):
    assert link.b.W is link.a.W and link.c is link.a
    assert link.rows[0] is link.a and link.rows[2] is link.a
    assert len(list(link.params())) == 4


def test_the_count_has_each_once():
    assert Tied().count_params() == 9 + 3 + 6 + 2


@pytest.mark.parametrize(
    "clone",
    [
        lambda link: link.copy("share"),
        lambda link: link.copy("copy"),
        lambda link: link.copy("init"),
        copy.deepcopy,
        lambda link: link.repeat(2, "share")[1],
    ],
)
def test_copies_are_tied_as_well(clone):
    link = Tied()
    made = clone(link)
    assert_tied(made)
    assert_tied(link)
    assert made.a.W is not link.a.W


def test_a_copy_shares_arrays_but_no_gradients():
    link = Tied()
    shared = link.copy()
    shared.cleargrads()
    shared(X).backward()
    assert shared.a.W.array is link.a.W.array
    assert numpy.isnan(link.a.W.grad).all()
    link.cleargrads()
    link(X).backward()
    numpy.testing.assert_array_equal(link.a.W.grad, shared.a.W.grad)


def test_a_class_s_own_copy_is_called():
    class Counted(L.Linear):
        copies = 0

        def copy(self, mode="share"):
            made = super().copy(mode)
            made.copies += 1
            return made

    counted = Counted(3, 3)
    made = renga.Chain(a=counted, b=counted).copy()
    assert made.a is made.b and made.a.copies == 1


def test_gradients_are_added_once():
    links = [Tied(), Tied()]
    for link, x in zip(links, (X, 2 * X)):
        link.cleargrads()
        link(x).backward()
    expected = [p.grad + q.grad for p, q in zip(*(link.params() for link in links))]
    links[0].addgrads(links[1])
    for param, grad in zip(links[0].params(), expected):
        numpy.testing.assert_allclose(param.grad, grad, 1e-12)


def test_gradients_of_untied_parameters_are_added_up():
    tied = renga.Chain(a=L.Linear(2, 1), b=L.Linear(2, 1))
    with tied.b.init_scope():
        tied.b.W = tied.a.W
    untied = renga.Chain(a=L.Linear(2, 1), b=L.Linear(2, 1))
    tied.cleargrads()
    for name, value in (("a", 2.0), ("b", 3.0)):
        untied[name].W.grad = numpy.full((1, 2), value, "f")
        untied[name].b.grad = numpy.ones(1, "f")
    tied.addgrads(untied)
    numpy.testing.assert_array_equal(tied.a.W.grad, [[5, 5]])
