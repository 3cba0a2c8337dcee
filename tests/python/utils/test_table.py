"""Tables as text."""

from renga.utils.table import aligned

ROWS = [("name", "n", "note"), ("a", "10", ""), ("long name", "3", "x")]


def test_columns_are_aligned():
    assert aligned(ROWS) == [
        "name       n   note",
        "a          10",
        "long name  3   x",
    ]
    assert aligned(ROWS, right=[1])[1:] == ["a          10", "long name   3  x"]
    assert aligned(ROWS, right=None)[0] == "     name   n  note"


def test_a_table_without_rows():
    assert aligned([]) == []
