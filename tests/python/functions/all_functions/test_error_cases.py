"""Wrong, odd and mixed arguments have Chainer's outcomes, or those of the table."""

import pytest

import renga
import renga.functions as F
from tests.python.functions.cases import error_cases

NAMES = error_cases.namespace(F, renga.Variable)
CASES = error_cases.by_name(error_cases.all_cases())


@pytest.mark.parametrize("name", CASES)
def test_outcomes(name):
    wrong = error_cases.differences(CASES[name], NAMES)
    assert not wrong, wrong


def test_most_outcomes_equal_those_of_chainer():
    lines = error_cases.all_cases().strip().split("\n")
    errors = [line for line in lines if line.endswith(("Error", "InvalidType"))]
    assert len(errors) > 400
    assert sum(" | " in line for line in lines) < len(lines) / 7
