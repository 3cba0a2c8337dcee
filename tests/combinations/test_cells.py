"""Each cell of the table."""

from __future__ import annotations

import pytest

from tests.combinations.comparison import check, check_refused
from tests.combinations.table import CELLS


def parameters():
    """The cells that make sense."""
    for cell in CELLS:
        if cell.absent is None:
            marks = []
            if cell.opened is not None:
                marks.append(pytest.mark.xfail(reason=cell.opened, strict=True))
            yield pytest.param(cell, id=cell.name, marks=marks)


@pytest.fixture(autouse=True)
def short_timeout(monkeypatch):
    """A rank that waits in vain fails soon."""
    monkeypatch.setenv("RENGA_TIMEOUT", "20")


@pytest.mark.parametrize("cell", list(parameters()))
def test_cell(cell):
    if cell.refused is not None:
        check_refused(cell.row, cell.column, cell.refused)
    else:
        check(cell.row, cell.column)
