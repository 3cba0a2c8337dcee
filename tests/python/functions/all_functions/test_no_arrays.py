"""Lists, numbers and others in place of the arrays of every function."""

import re
import warnings

import numpy
import pytest

import renga
import renga.functions as F
from renga.utils.type_check import InvalidType
from tests.python.functions.cases import edge_cases

OTHERS = {
    "list": lambda x: x.tolist() if x.ndim else [x.item()],
    "tuple": lambda x: tuple(x.ravel().tolist()),
    "number": lambda x: 0.5,
    "0-d": lambda x: x.dtype.type(0.5),
    "None": lambda x: None,
    "text": lambda x: "arrays",
    "dict": lambda x: {"x": x},
    "arrays": lambda x: [x, x],
}
# All but those that compute with the arrays before the function is called.
CALLS = [
    call
    for call in edge_cases.calls()
    if re.match(r"F\.(?!.*(\.astype|coo\(|\* s|\* u|\) \+))", call)
]


class Inputs(edge_cases.Inputs):
    """The names in a call, with something else for one of its operands."""

    def __init__(self, place, other):
        super().__init__(renga, 2, "f")
        self.place, self.other, self.made = place, other, 0

    def positive(self, *shape):
        return self._replaced(super().positive(*shape))

    def signed(self, *shape):
        return self._replaced(super().signed(*shape))

    def integers(self, below, *shape):
        return self._replaced(super().integers(below, *shape))

    def _replaced(self, x):
        self.made += 1
        array = numpy.asarray(getattr(x, "array", x))
        return self.other(array) if self.made == self.place else x


@pytest.mark.parametrize("call", CALLS)
def test_what_is_no_array(call):
    """Each operand in turn is taken, or refused by an error that says so."""
    for name, other in OTHERS.items():
        place, inputs = 0, None
        while inputs is None or inputs.made > place:
            place += 1
            inputs = Inputs(place, other)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    eval(call, inputs.names)
                except (TypeError, ValueError, IndexError, InvalidType) as error:
                    named = "expected" in str(error) or "incompatible" in str(error)
                    assert named or "operand" in str(error), (name, place)


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda x: F.clip(x.tolist(), 0, 1), "clip: expected arrays, got list"),
        (lambda x: F.mean(x.tolist()), "average: expected arrays, got list"),
        (lambda x: F.identity(x, 3), "identity: expected arrays, got ndarray and int"),
        (lambda x: F.rrelu(x, r=0.5), "rrelu: expected arrays, got float"),
        (
            lambda x: F.convolution_nd(x, 2.0),
            "convolution_nd: expected arrays, got ndarray and float",
        ),
        (
            lambda x: F.dropout(x, mask=[1]),
            "dropout: expected arrays, got ndarray and list",
        ),
    ],
)
def test_texts(call, error):
    with pytest.raises(TypeError, match=f"^{error}$"):
        call(numpy.ones((2, 3), "f"))


def test_losses_of_normal_distributions_take_numbers():
    """As in Chainer, the mean and what is observed may be numbers."""
    s = numpy.array([[0.3, -1.2, 0.7]])
    kl = F.gaussian_kl_divergence(0.5, renga.Variable(s))
    numpy.testing.assert_allclose(kl.array, 0.5 * (0.25 + numpy.exp(s) - s - 1).sum())
    ln_var = renga.Variable(s)
    nll = F.gaussian_nll(2, 0.5, ln_var)
    expected = 0.5 * (numpy.log(2 * numpy.pi) + s + 1.5**2 * numpy.exp(-s))
    numpy.testing.assert_allclose(nll.array, expected.sum())
    nll.backward()
    numpy.testing.assert_allclose(
        ln_var.grad, 0.5 * (1 - 1.5**2 * numpy.exp(-s)), rtol=1e-12
    )
    single = F.bernoulli_nll(True, s.astype("f"), reduce="no")
    assert single.dtype == "f"
    numpy.testing.assert_allclose(single.array, numpy.log1p(numpy.exp(-s)), rtol=1e-6)


def test_states_and_samples_without_axes():
    one, x = numpy.float32(1), numpy.ones((2, 3), "f")
    for call in (
        lambda: F.n_step_gru(1, 0, one, [[x] * 6], [[x] * 6], [x]),
        lambda: F.n_step_rnn(1, 0, x[None], [[x] * 2], [[x] * 2], [one]),
        lambda: F.tree_lstm(one, x),
        lambda: F.negative_sampling(
            x, numpy.zeros(2, "i"), x, lambda shape: numpy.zeros(2, "i"), 2
        ),
    ):
        with pytest.raises(InvalidType, match="expected"):
            call()
