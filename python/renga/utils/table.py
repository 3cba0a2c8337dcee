"""Tables as text."""

from __future__ import annotations

from collections.abc import Collection, Sequence


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
