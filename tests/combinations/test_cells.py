"""Cells of the table: every refused one, and one in three of the others.

Columns that differ little stand side by side. Of three such columns each row has a cell
here, and of three rows each column. ``tools/combinations`` runs all cells.
"""

from __future__ import annotations

import pytest

from tests.combinations.comparison import check, check_refused
from tests.combinations.table import CELLS


def parameters():
    """The chosen ones of the cells that make sense."""
    for cell in CELLS:
        if cell.absent is None and cell.is_chosen(0):
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
