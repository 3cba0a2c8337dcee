"""Links of invalid sizes are refused by their constructors."""

import warnings

import pytest

import renga
import renga.functions as F
import renga.links as L
from renga import initializers
from tests.links.cases import size_cases
from tests.python.functions.cases import error_cases

NAMES = {
    **error_cases.namespace(F, renga.Variable),
    "L": L,
    "I": initializers,
    "P": renga.Parameter,
}


@pytest.mark.parametrize(("call", "expected"), error_cases.table(size_cases.CASES))
def test_outcome(call, expected):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert error_cases.outcome(call, NAMES) == expected
