"""The first example: its two scripts differ in five lines and give the same results."""

from __future__ import annotations

import difflib
import json
import os
from pathlib import Path

import numpy
import pytest

from tests.scripts import run_script

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples" / "01_digits"
SERIAL, PARALLEL = "train_digits.py", "train_digits_data_parallel.py"


def changed_lines() -> list[str]:
    """The diff's lines, without its headers."""
    texts = [(EXAMPLES / name).read_text().splitlines() for name in (SERIAL, PARALLEL)]
    lines = list(difflib.unified_diff(*texts, lineterm="", n=0))[2:]
    return [line for line in lines if line[0] in "+-"]


def test_the_scripts_are_five_lines_apart():
    lines = changed_lines()
    assert sum(line.startswith("+") for line in lines) == 5
    assert sum(line.startswith("-") for line in lines) <= 5


def test_the_readme_shows_these_lines():
    readme = (ROOT / "README.md").read_text()
    for line in changed_lines():
        assert line in readme


def train(script: str, ranks: int, out: Path, *options: str) -> Path:
    options = ("--epoch", "1", "--out", str(out), *options)
    done = run_script(EXAMPLES / script, *options, cwd=Path.cwd(), ranks=ranks)
    assert done.returncode == 0, done.stderr
    return out


@pytest.mark.skipif("OMPI_COMM_WORLD_RANK" in os.environ, reason="starts mpiexec")
def test_ranks_train_as_one_process_does(tmp_path):
    one = train(SERIAL, 1, tmp_path / "one")
    assert json.loads((one / "log").read_text())[0]["iteration"] == 30
    assert {p.name for p in one.iterdir()} >= {"loss.png", "accuracy.png"}
    in_parts = "train_digits_model_parallel.py"
    for script, ranks, *options in (
        (PARALLEL, 3, "--batchsize", str(48 // 3)),
        (in_parts, 2, "--strategy", "channel"),
        (in_parts, 3, "--strategy", "spatial"),
    ):
        many = train(script, ranks, tmp_path / options[-1], *options)
        with numpy.load(one / "model.npz") as a, numpy.load(many / "model.npz") as b:
            assert set(a) == set(b)
            for name in a:
                numpy.testing.assert_allclose(a[name], b[name], rtol=0, atol=1e-5)
