"""Runs the blocks of Python of a page, one after the other, in one namespace.

    python run_page.py PAGE [SETUP]

SETUP is a file of Python that runs before. A block whose first line is ``# name.py`` is
written to that file instead; lines of shell blocks that begin with ``renga run`` are
then run. Other shell commands are not: they install packages or need a cluster.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path


def blocks(text: str) -> list[tuple[int, str, str]]:
    """(line, language, code) of the fenced blocks; those of doctest are left out."""
    found = []
    for match in re.finditer(r"^```(\w+)\n(.*?)^```$", text, re.M | re.S):
        line = text.count("\n", 0, match.start()) + 1
        if not match[2].startswith(">>> "):
            found.append((line, match[1], match[2]))
    return found


def run(page: Path, setup: str) -> None:
    """Runs the blocks in the current folder."""
    scope: dict[str, object] = {"__name__": "__main__"}
    exec(compile(setup, "setup", "exec"), scope)
    for line, language, code in blocks(page.read_text(encoding="utf-8")):
        name = re.match(r"# (\w+\.py)\n", code)
        if language == "sh":
            for command in code.splitlines():
                words = command.split(" #")[0].split()[1:]
                # With a setup, the script may be the reader's own.
                if command.startswith("renga run ") and (
                    not setup or any(Path(word).is_file() for word in words)
                ):
                    subprocess.run([sys.executable, "-m", "renga", *words], check=True)
        elif language == "python" and name:
            Path(name[1]).write_text(code, encoding="utf-8")
        elif language == "python":
            # Errors show the line of the page.
            padded = "\n" * line + code
            exec(compile(padded, str(page), "exec"), scope)


if __name__ == "__main__":
    run(Path(sys.argv[1]), Path(sys.argv[2]).read_text() if sys.argv[2:] else "")
