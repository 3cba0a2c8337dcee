"""The catalogue has a whole row for each function, link and optimizer, and no other."""

from tests.catalogue import CATALOGUE, LINKS, OPTIMIZERS, optimizers
from tests.catalogue.links import row as links
from tests.catalogue.row import OPERATIONS, PUBLIC, function_name

ROWS = {**CATALOGUE, **LINKS, **OPTIMIZERS}


def test_each_has_a_row():
    assert set(CATALOGUE) == {*OPERATIONS, *PUBLIC}
    assert set(LINKS) == links.PUBLIC
    assert set(OPTIMIZERS) == optimizers.PUBLIC
    assert len(ROWS) == len(CATALOGUE) + len(LINKS) + len(OPTIMIZERS)


def test_rows_are_whole():
    missing = {name: ", ".join(row.missing()) for name, row in ROWS.items()}
    wrong = [f"{name}: expected {fields}" for name, fields in missing.items() if fields]
    assert not wrong, "\n".join(wrong)


def test_calls_are_those_of_the_function():
    for name, row in CATALOGUE.items():
        calls = [*row.edges, *(line.partition(" -> ")[0] for line in row.errors)]
        assert {function_name(call) for call in calls} <= {name}


def test_calls_are_those_of_the_link():
    for name, row in LINKS.items():
        calls = [*row.created, *row.edges, *row.errors]
        assert {links.link_name(call) for call in calls} <= {name}
