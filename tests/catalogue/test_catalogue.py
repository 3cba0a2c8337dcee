"""The catalogue has a whole row for each function, link and optimizer, and no other."""

import pytest

from tests.catalogue import CATALOGUE, LINKS, OPTIMIZERS, optimizers
from tests.catalogue.links import row as links
from tests.catalogue.row import OPERATIONS, PUBLIC, function_name

ROWS = {**CATALOGUE, **LINKS, **OPTIMIZERS}


def test_each_has_a_row():
    assert set(CATALOGUE) == {*OPERATIONS, *PUBLIC}
    assert set(LINKS) == links.PUBLIC
    assert set(OPTIMIZERS) == optimizers.PUBLIC
    assert len(ROWS) == len(CATALOGUE) + len(LINKS) + len(OPTIMIZERS)


@pytest.mark.parametrize("name", ROWS)
def test_a_row_is_whole(name):
    missing = ", ".join(ROWS[name].missing())
    assert not missing, f"{name}: expected the fields {missing} in tests/catalogue"


@pytest.mark.parametrize("name", CATALOGUE)
def test_calls_are_those_of_the_function(name):
    row = CATALOGUE[name]
    calls = [*row.edges, *(line.partition(" -> ")[0] for line in row.errors)]
    assert {function_name(call) for call in calls} <= {name}


@pytest.mark.parametrize("name", LINKS)
def test_calls_are_those_of_the_link(name):
    row = LINKS[name]
    calls = [*row.created, *row.edges, *row.errors]
    assert {links.link_name(call) for call in calls} <= {name}
