"""Cells on two processes, all in one start."""

from __future__ import annotations

import functools
import json
import os
import re
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

import pytest

from tests.combinations.processes import cells

ROOT = Path(__file__).resolve().parents[2]
MPIEXEC = Path(sysconfig.get_path("scripts")) / "mpiexec"

pytestmark = [
    pytest.mark.skipif(not MPIEXEC.exists(), reason="needs mpiexec"),
    pytest.mark.skipif("OMPI_COMM_WORLD_SIZE" in os.environ, reason="is a rank"),
]


@functools.cache
def outcomes():
    """The outcomes of all cells by name, and what the processes wrote to stderr."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "outcomes.json")
        program = ["-m", "tests.combinations.processes", str(path)]
        command = [sys.executable, "-m", "renga.launch", "-n", "2", *program]
        path_variable = os.pathsep.join(filter(None, [str(ROOT), PYTHONPATH]))
        environment = {"OMP_NUM_THREADS": "1", "RENGA_TIMEOUT": "20", **os.environ}
        environment["PYTHONPATH"] = path_variable
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=250
        )
        found = json.loads(path.read_text()) if path.exists() else {}
        return found, done


PYTHONPATH = os.environ.get("PYTHONPATH")


def parameters():
    """The cells, of which those that are open have to fail."""
    for cell in cells():
        marks = []
        if cell.opened is not None:
            marks.append(pytest.mark.xfail(reason=cell.opened, strict=True))
        yield pytest.param(cell.name, id=cell.name, marks=marks)


@pytest.mark.parametrize("name", list(parameters()))
def test_cell(name):
    found, done = outcomes()
    assert name in found, done.stderr[-2000:]
    assert not found[name]


def test_an_exception_arrives():
    _, done = outcomes()
    assert done.returncode != 0
    assert re.search("Broken: sample 3 of step 2 cannot be read", done.stderr)
