"""Wrong, odd and mixed arguments have Chainer's outcomes, or those of the table."""

import warnings

import pytest

import renga
import renga.functions as F
from tests.python.functions.cases import error_cases

NAMES = error_cases.namespace(F, renga.Variable)


@pytest.mark.parametrize(
    ("call", "expected"), error_cases.table(error_cases.all_cases())
)
def test_outcome(call, expected):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert error_cases.outcome(call, NAMES) == expected


def test_most_outcomes_equal_those_of_chainer():
    lines = error_cases.all_cases().strip().split("\n")
    errors = [line for line in lines if line.endswith(("Error", "InvalidType"))]
    assert len(errors) > 400
    assert sum(" | " in line for line in lines) < len(lines) / 7
