"""Tables as text and as HTML."""

from __future__ import annotations

import html
from collections.abc import Collection, Iterable, Sequence


def aligned(
    rows: Sequence[Sequence[str]], right: Collection[int] | None = ()
) -> list[str]:
    """A line for each row of cells, in columns with two spaces between them.

    Args:
        rows: all of the same length.
        right: the numbers of the columns that are aligned to the right; None for all.
    """
    widths = [max(map(len, column)) for column in zip(*rows)]
    lines = []
    for row in rows:
        cells = [
            cell.rjust(width) if right is None or i in right else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths))
        ]
        lines.append("  ".join(cells).rstrip())
    return lines


def html_table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table for a notebook."""

    def row(cells: Sequence[str], tag: str) -> str:
        texts = (f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells)
        return f"<tr>{''.join(texts)}</tr>"

    return f"<table>{row(titles, 'th')}{''.join(row(r, 'td') for r in rows)}</table>"
