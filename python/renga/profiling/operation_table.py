"""Tables of operations: how long they ran, what they read, wrote and computed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from renga.profiling.operation_cost import OperationCost
from renga.utils.table import aligned

_HEADINGS = [
    *("operation", "direction", "calls", "ms", "us each", "share", "MB", "GFLOP/s")
]


class OperationRow(NamedTuple):
    """All runs of an operation in one direction, forward or backward."""

    name: str
    direction: str
    calls: int
    seconds: float  # without nested operations
    bytes: int | None  # read and written; None unless known for every run
    flops: int | None  # likewise


def rows_of(
    runs: Iterable[tuple[str, str, float, OperationCost]],
) -> list[OperationRow]:
    """One row for each operation and direction, the longest first.

    Args:
        runs: the name, the direction, the seconds and the cost of each.
    """
    found: dict[tuple[str, str], list[tuple[float, OperationCost]]] = {}
    for name, direction, seconds, cost in runs:
        found.setdefault((name, direction), []).append((seconds, cost))
    rows = [
        OperationRow(
            *key,
            len(own),
            sum(seconds for seconds, _ in own),
            _sum_if_known([cost.bytes for _, cost in own]),
            _sum_if_known([cost.flops for _, cost in own]),
        )
        for key, own in found.items()
    ]
    return sorted(rows, key=lambda row: -row.seconds)


def table_of(rows: Sequence[OperationRow]) -> str:
    """The rows as text, with each one's percentage of the total time."""
    total = sum(row.seconds for row in rows)
    cells = [_HEADINGS, *(_cells(row, total) for row in rows)]
    lines = aligned(cells, right=range(2, len(_HEADINGS)))
    calls = sum(row.calls for row in rows)
    return "\n".join([*lines, f"{calls} operations took {total * 1e3:.3f} ms"])


def _cells(row: OperationRow, total: float) -> list[str]:
    share = row.seconds / total if total else 0
    return [
        row.name,
        row.direction,
        str(row.calls),
        f"{row.seconds * 1e3:.3f}",
        f"{row.seconds / row.calls * 1e6:.1f}",
        f"{share:.1%}",
        "-" if row.bytes is None else f"{row.bytes / 1e6:.3f}",
        "-" if row.flops is None else f"{row.flops / 1e9 / row.seconds:.1f}",
    ]


def _sum_if_known(numbers: list[int | None]) -> int | None:
    known = [n for n in numbers if n is not None]
    return sum(known) if len(known) == len(numbers) else None
