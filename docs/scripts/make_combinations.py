"""Prints docs/parallel/combinations.md from the table of tests/combinations."""

from __future__ import annotations

import collections
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.combinations.columns import PACKAGES  # noqa: E402
from tests.combinations.rows import ROWS, SUBJECTS, rows_of  # noqa: E402
from tests.combinations.table import CELLS  # noqa: E402

INTRODUCTION = """# Combinations

A feature of a model or of its training, beside a way to run it on ranks, gives the
numbers of one process, or an error that names the combination before any parameter of
the step changes. Each cell of these tables is a test of `tests/combinations`, of which
`make test` runs those that are refused and, of the others, one in three. After five
updates parameters, states of optimizers, losses and files are within 1e-9 in float64
and 1e-5 in float32 of the reference. Ranks that should be equal are so to the bit.

The reference is one process that runs what the way is defined to do:

- the plain program;
- for statistics of shards and micro-batches, the shards of a batch one after another,
  whose gradients are added by samples;
- for double buffering, gradients one update late;
- for compression that keeps something back, the sum of what was kept and what came;
- for local SGD, DiLoCo, elastic averaging and D-PSGD, replicas by their published
  formulas.

| | |
|---|---|
| ✓ | equal to the reference |
| ≈ | depends on time, or on random numbers of shards; the ranks agree to the bit |
| – | refused, with the text below |
| ○ | open: neither yet |
| | makes no sense, for the reason below |

`tools/combinations` runs all cells, and random pairs of two features at once; it prints
what fails with a command that repeats it.

{count}
"""


def page() -> str:
    """The page as Markdown."""
    counts = collections.Counter(symbol(each) for each in CELLS)
    made = sum(counts.values()) - counts[""]
    count = (
        f"\n{made} combinations: {counts['✓'] + counts['≈']} hold, {counts['–']} are"
    )
    count += " refused."
    if counts["○"]:
        count += f" {counts['○']} are open."
    parts = [INTRODUCTION.format(count=count)]
    by_name = {(each.row.name, each.column.name): each for each in CELLS}
    for package in PACKAGES:
        parts.append(section(package, by_name))
    return "\n".join(parts)


def symbol(cell) -> str:
    """What a cell gives."""
    if cell.absent is not None:
        return ""
    if cell.opened is not None:
        return "○"
    if cell.refused is not None:
        return "–"
    return "✓" if cell.column.is_exact_on(cell.row) else "≈"


def section(package, by_name) -> str:
    """The table of the columns of a package, and what is below it."""
    columns = package.COLUMNS
    title = package.__doc__.splitlines()[0].rstrip(".").replace("``", "`")
    lines = [f"## {title}", ""]
    lines.append("| | " + " | ".join(column.name for column in columns) + " |")
    lines.append("|---|" + ":-:|" * len(columns))
    for subject in SUBJECTS:
        for row in rows_of(subject):
            cells = [by_name[row.name, column.name] for column in columns]
            lines.append(f"| {row.name} | " + " | ".join(map(symbol, cells)) + " |")
    cells = [by_name[row.name, column.name] for row in ROWS for column in columns]
    lines += ["", *notes("Refused", cells, "refused"), *notes("Empty", cells, "absent")]
    lines += notes("Open", cells, "opened")
    return "\n".join(lines)


def notes(title, cells, attribute) -> list[str]:
    """A line for each text of cells, with the rows and columns that have it."""
    groups = collections.defaultdict(list)
    for each in cells:
        text = getattr(each, attribute)
        if text is not None and (each.absent is None or attribute == "absent"):
            groups[text].append(each)
    lines = []
    for text, group in groups.items():
        rows = ", ".join(dict.fromkeys(each.row.name for each in group))
        columns = "; ".join(dict.fromkeys(each.column.name for each in group))
        text = text if attribute == "absent" else f"`{text}`"
        lines.append(f"- {rows} / {columns}: {text}")
    return [f"{title}:", "", *lines, ""] if lines else []


if __name__ == "__main__":
    print(page(), end="")
