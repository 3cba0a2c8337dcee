"""Prints the Python tests of the files that differ from a git revision.

    python tests/affected.py [main]

`make check` runs them. Tests mirror the folders of what they test: a file is tested by
``test_<its name>*.py`` in the mirrored folder, or else by all tests there; a folder
without a mirror by ``test_<the folder's name>*.py``.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# The longest prefix first.
MIRRORS = {
    "python/renga/parallel": "tests/parallel",
    "python/renga/_runtime": "tests/python/core",
    "python/renga/core": "tests/python",
    "python/renga": "tests/python",
    "links": "tests/links",
    "extensions": "tests/extensions",
    "communicators": "tests/communicators",
    "csrc/autograd": "tests/python/variable",
    "csrc/devices": "tests/python/core",
    "csrc/nn": "tests/cpp",
    "csrc/ops": "tests/python/ops",
    "csrc/python": "tests/python",
    "csrc/settings": "tests/python/configuration",
    "csrc/tensor": "tests/python/functions/array",
}
ALWAYS = "tests/test_layering.py"


def changed_files(revision: str) -> list[str]:
    """Those that differ from the common ancestor with ``revision``, and new ones."""

    def git(*arguments: str) -> list[str]:
        done = subprocess.run(
            ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True
        )
        return done.stdout.split("\n")[:-1]

    (base,) = git("merge-base", revision, "HEAD")
    new = git("ls-files", "--others", "--exclude-standard")
    return [*git("diff", "--name-only", base), *new]


def tests_of(file: str) -> list[str]:
    """The tests of one file; none if nothing mirrors it."""
    path = Path(file)
    if path.parts[0] == "tests" and path.name.startswith("test_"):
        return [file] if (ROOT / path).exists() else []
    for source, mirror in MIRRORS.items():
        if path.is_relative_to(source):
            folder = Path(mirror) / path.relative_to(source).parent
            break
    else:
        return []
    stems = [path.stem]
    while not (ROOT / folder).is_dir():
        stems.append(folder.name)
        folder = folder.parent
    own = [test for stem in stems for test in (ROOT / folder).glob(f"test_{stem}*.py")]
    package = ROOT / folder / path.stem
    if package.is_dir():
        own.append(package)
    found = own or (ROOT / folder).glob("test_*.py")
    return sorted({str(test.relative_to(ROOT)) for test in found})


def main() -> None:
    revision = sys.argv[1] if len(sys.argv) > 1 else "main"
    tests = {test for file in changed_files(revision) for test in tests_of(file)}
    print(*sorted({ALWAYS, *tests}))


if __name__ == "__main__":
    main()
