"""Prints docs/cpp/operations.md from the core's lists and the headers of operations."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import NamedTuple

from renga import _core

CSRC = Path(__file__).resolve().parents[2] / "csrc"
_DECLARATION = re.compile(
    r"^(?:Variable|Array|std::[^\n(]*)\s(\w+)\([^;]*\);", re.MULTILINE
)


class Function(NamedTuple):
    """A function of C++ and the header that declares it."""

    header: str
    declaration: str


def functions() -> dict[str, list[Function]]:
    """The functions in the headers of all families, by name."""
    found: dict[str, list[Function]] = {}
    families = (CSRC / "ops/ops.h").read_text()
    for header in re.findall(r'#include "(.*)"', families):
        # The lists come after the declarations.
        declared = (CSRC / header).read_text().partition("template <class Visit>")[0]
        for match in _DECLARATION.finditer(declared):
            found.setdefault(match[1], []).append(Function(header, match[0]))
    return found


def reference() -> str:
    """The page as Markdown."""
    lines = [
        "# Functions of operations",
        "",
        "`<renga/renga.h>` declares them in the namespace `renga`. They take and",
        "return `Variable`s, record the graph, and throw `InvalidType` for shapes and",
        "dtypes that do not fit. Sections are the headers that declare them.",
    ]
    declared = functions()
    for header, ops in itertools.groupby(
        _core.ops.entries, lambda op: declared[op.name][0].header
    ):
        lines += ["", f"## {header}", "", "```cpp"]
        for op in ops:
            lines += [f"// {op.summary}", f"// {op.shapes}"]
            lines += [function.declaration for function in declared[op.name]]
        lines += ["```"]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(reference(), end="")
