"""Every block of Python in the documentation runs as it is printed."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

from tests.docs.block_setups import FRAGMENTS, SETUPS
from tests.docs.run_page import blocks
from tests.scripts import run_script

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PAGES = [
    page
    for page in PAGES
    if "reference" not in page.parts
    and page.name not in FRAGMENTS
    and any(language == "python" for _, language, _ in blocks(page.read_text("utf-8")))
]
pytestmark = [
    pytest.mark.skipif("OMPI_COMM_WORLD_RANK" in os.environ, reason="starts mpiexec"),
    pytest.mark.timeout(300),
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_page(page, tmp_path):
    for package in ("sklearn", "matplotlib", "onnx", "onnxruntime", "optuna"):
        if package in page.read_text("utf-8"):
            pytest.importorskip(package)
    ranks, setup = SETUPS.get(page.name, (1, ""))
    (tmp_path / "setup.txt").write_text(setup)
    run_page = Path(__file__).with_name("run_page.py")
    arguments = [run_page, page, tmp_path / "setup.txt"]
    variables = {"MPLBACKEND": "agg", "PYTHONPATH": _path()}
    env = {**os.environ, **variables}
    done = run_script(*arguments, cwd=tmp_path, env=env, ranks=ranks)
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]


def _path() -> str:
    """The modules of this process, in a folder that is not the repository's."""
    return os.pathsep.join(p for p in sys.path if p)


@pytest.mark.parametrize("name", FRAGMENTS)
def test_fragments_are_in_the_folders_that_the_page_names(name):
    text = (ROOT / "docs" / name).read_text("utf-8")
    named = re.findall(r"`((?:csrc|python|tests)/[\w/]+\.(?:h|cpp|py))`", text)
    folders = {(ROOT / path).parent for path in named}
    files = [path for folder in folders for path in folder.iterdir()]
    sources = [path.read_text("utf-8") for path in files if path.is_file()]
    assert all((ROOT / path).is_file() for path in named)
    assert len(blocks(text)) >= 9
    for line, _, code in blocks(text):
        assert any(code in source for source in sources), f"{name}:{line}"


def test_every_page_with_a_setup_exists():
    assert set(SETUPS) | FRAGMENTS <= {p.name for p in (ROOT / "docs").rglob("*.md")}


def test_blocks_are_found_with_their_lines():
    text = "a\n```python\n1 / 0\n```\n```python\n>>> 1\n```\n```sh\nls\n```\n"
    assert blocks(text) == [(2, "python", "1 / 0\n"), (8, "sh", "ls\n")]
