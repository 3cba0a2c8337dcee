# ruff: noqa: E501
"""Links, parameters and initializers with odd sizes.

The calls of links are those of the catalogue (``errors``). Each line has a call and the
error's name, or dtypes and shapes of what it gives.
"""

import re

import numpy as np
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga import initializers
from tests.catalogue import LINKS
from tests.python.functions.cases import error_cases

OTHERS = r"""
P(0, (-3,)) -> ValueError
P(0, (2**62,)) -> MemoryError
P(0, (2**64,)) -> MemoryError
P(0, (2**40, 2**40)) -> MemoryError
P(0, -3) -> ValueError
P(0, 3.0) -> TypeError
P(0, '3') -> TypeError
P(0, (3.0,)) -> TypeError
P(0, ((3,),)) -> TypeError
P(0, (1,) * 17) -> ValueError
P(0, (1,) * 70) -> ValueError
P(0, 2**40) -> MemoryError
I.generate_array(I.Zero(), (-3,), numpy) -> ValueError
I.generate_array(I.Zero(), (2**62,), numpy) -> MemoryError
I.generate_array(I.Zero(), (2**64,), numpy) -> MemoryError
I.generate_array(I.Zero(), (2**40,), numpy) -> MemoryError
I.generate_array(I.Zero(), 'ab', numpy) -> TypeError
I.generate_array(I.Normal(), (0, 3), numpy) -> float32 (0, 3)
I.generate_array(I.LeCunNormal(), (0, 3), numpy) -> float32 (0, 3)
I.generate_array(I.LeCunNormal(), (3, 0), numpy) -> float32 (3, 0)
I.generate_array(I.LeCunUniform(), (3, 0), numpy) -> float32 (3, 0)
I.generate_array(I.GlorotNormal(), (0, 0), numpy) -> float32 (0, 0)
I.generate_array(I.GlorotUniform(), (0, 0), numpy) -> float32 (0, 0)
I.generate_array(I.HeNormal(), (3, 0), numpy) -> float32 (3, 0)
I.generate_array(I.HeUniform(), (3, 0), numpy) -> float32 (3, 0)
I.generate_array(I.Orthogonal(), (3, 0), numpy) -> ValueError
I.generate_array(I.Identity(), (0, 0), numpy) -> float32 (0, 0)
"""
CASES = "\n".join(line for row in LINKS.values() for line in row.errors) + OTHERS
NAMES = {
    **error_cases.namespace(F, renga.Variable),
    "L": L,
    "I": initializers,
    "P": renga.Parameter,
}


BY_NAME = error_cases.by_name(CASES)


@pytest.mark.parametrize("name", BY_NAME)
def test_outcomes(name):
    wrong = error_cases.differences(BY_NAME[name], NAMES)
    assert not wrong, wrong


# Calls of constructors alone, with sizes of which one may be a tuple.
SIZES = (
    r"(L\.(?!Classifier)(\w+)\([^()]*(?:\([\d, -]*\))?[^()]*\)) -> (?:Value|Type)Error$"
)


@pytest.mark.parametrize(("call", "name"), re.findall(SIZES, CASES, re.MULTILINE))
def test_constructors_name_the_link(call, name):
    with pytest.raises((TypeError, ValueError), match=f"^{name}: expected "):
        eval(call, dict(NAMES))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("L.Linear(3, 2.5)", "Linear: expected an integer as out_size, got 2.5"),
        ("L.LSTM(-3, 2)", "LSTM: expected in_size of 0 or more, got -3"),
        ("L.Scale(1, (4, -3))", "Scale: expected W_shape of 0 or more, got -3"),
        ("L.Inception(3, 1, 1, 1.5, 1, 1, 1)", "Inception: .* as out3, got 1.5"),
        ("L.Convolution2D(3, 4, 3, pad=(1,))", "Convolution2D: .* pad as .*, got (1,)"),
        (
            "F.max_pooling_2d(f(1, 1, 4, 4), (2,))",
            "max_pooling_2d: expected ksize as a",
        ),
        ("L.ConvolutionND(3, 2, 2, (3, 3))", "ConvolutionND: expected 3 numbers as ks"),
        ("F.max_pooling_nd(f(1, 1, 4, 4), 2, (2,))", "max_pooling_nd: .* as stride"),
        (
            "F.im2col(f(1, 1, 4, 4), 2, (1, 1, 1))",
            "im2col: expected 2 integers as stri",
        ),
    ],
)
def test_messages(call, message):
    pattern = re.escape(message).replace(r"\.\*", ".*")
    with pytest.raises((AssertionError, TypeError, ValueError), match=pattern):
        eval(call, dict(NAMES))


@pytest.mark.parametrize(
    ("call", "without_size", "shape"),
    [
        ("Linear(3, 2)", "Linear(None, 2)", (4, 3)),
        ("Convolution2D(3, 2, 1)", "Convolution2D(None, 2, 1)", (4, 3, 5, 5)),
        ("Deconvolution2D(3, 2, 1)", "Deconvolution2D(None, 2, 1)", (4, 3, 5, 5)),
        (
            "LocalConvolution2D(3, 2, 5, 2)",
            "LocalConvolution2D(None, 2, ksize=2)",
            (4, 3, 5, 5),
        ),
        ("BatchNormalization(3)", "BatchNormalization(axis=0)", (4, 3)),
        ("LayerNormalization(3)", "LayerNormalization()", (4, 3)),
        ("GroupNormalization(1, 3)", "GroupNormalization(1)", (4, 3)),
        ("LSTM(3, 2)", "LSTM(None, 2)", (4, 3)),
    ],
)
def test_subclasses_add_parameters_when_sizes_are_known(call, without_size, shape):
    # As links with spectral normalization do, whose scale depends on the weight.
    link = getattr(L, call.partition("(")[0])

    class Scaled(link):
        def _initialize_params(self, *sizes):
            super()._initialize_params(*sizes)
            with self.init_scope():
                self.scale = renga.Parameter(1, (1,))

    def names(model):
        return sorted(name for name, _ in model.namedparams())

    def made(call):
        return eval(call, {link.__name__: Scaled})

    expected = sorted([*names(eval(call, vars(L))), "/scale"])
    assert names(made(call)) == expected
    model = made(without_size)
    assert "/scale" not in names(model)
    model(np.ones(shape, "f"))
    assert names(model) == expected
