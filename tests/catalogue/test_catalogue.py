"""The catalogue has a whole row for every function, and nothing else."""

import pytest

from tests.catalogue import CATALOGUE
from tests.catalogue.row import OPERATIONS, PUBLIC, function_name


def test_every_function_has_a_row():
    assert set(CATALOGUE) == {*OPERATIONS, *PUBLIC}


@pytest.mark.parametrize("name", CATALOGUE)
def test_a_row_is_whole(name):
    row = CATALOGUE[name]
    missing = ", ".join(row.missing())
    assert not missing, f"{name}: expected the fields {missing} in tests/catalogue"
    calls = [*row.edges, *(line.partition(" -> ")[0] for line in row.errors)]
    assert {function_name(call) for call in calls} <= {name}
