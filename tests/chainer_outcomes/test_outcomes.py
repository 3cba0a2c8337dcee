"""What Chainer 7.8.1 does, recorded, and what renga does, in a process of its own.

``record.py`` writes the outcomes; ``differences.py`` lists where renga's differ on
purpose. ``test_ranks.py`` has those of several ranks; tests of functions and links have
those of ``edges``, which they try with further layouts of memory.
"""

import functools
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.chainer_outcomes.differences import COMPUTES, DIFFERENCES

FOLDER = Path(__file__).parent
FILES = sorted((FOLDER / "recorded").rglob("*.json"))
FILES = [file for file in FILES if file.parent.name not in ("edges", "ranks")]
RECORDED = {file.stem: json.loads(file.read_text()) for file in FILES}
TOLERANCE, HALF = 1e-4, 2e-2
# Initial values are drawn from the same seed; states and weights go on.
TIGHT = {"created_links": 2e-5, "pickles": 2e-5}


@functools.cache
def recorder():
    """A process that has imported renga as Chainer; it forks one for each line."""
    return subprocess.Popen(
        [sys.executable, "-m", "renga.chainer", FOLDER / "record.py", "lines"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "MPLBACKEND": "agg"},
    )


def outcomes(name):
    """Renga's outcomes of a file of cases."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "outcomes.json"
        print(name, file, file=recorder().stdin, flush=True)
        assert recorder().stdout.readline() == "0\n", file.read_text()
        return json.loads(file.read_text())


def same(expected, found, tolerance):
    """Whether values are equal, floats up to the tolerance."""
    if isinstance(expected, float) or isinstance(found, float):
        numbers = isinstance(expected, (int, float)) and isinstance(found, (int, float))
        return numbers and abs(expected - found) <= tolerance * (1 + abs(expected))
    if type(expected) is not type(found):
        return False
    if isinstance(expected, dict):
        return list(expected) == list(found) and all(
            same(expected[key], found[key], tolerance) for key in expected
        )
    if isinstance(expected, list):
        return len(expected) == len(found) and all(
            same(a, b, tolerance) for a, b in zip(expected, found)
        )
    return expected == found


def agrees(case, expected, found, tolerance=TOLERANCE):
    """Whether an error is of the class that is expected, or a value the same."""
    if "error" in expected:
        return expected["error"][0] in found.get("error", [])
    if expected is COMPUTES:
        return "value" in found
    if "value" not in found:
        return False
    half = "float16" in str(expected) or case.endswith(" of e")
    return same(expected["value"], found["value"], HALF if half else tolerance)


@pytest.mark.parametrize("name", RECORDED)
def test_outcomes(name):
    expected = {**RECORDED[name], **DIFFERENCES.get(name, {})}
    found, tolerance = outcomes(name), TIGHT.get(name, TOLERANCE)
    wrong = [
        f"{case}: expected {outcome}, got {found[case]}"
        for case, outcome in expected.items()
        if not agrees(case, outcome, found[case], tolerance)
    ]
    assert not wrong, "\n".join(wrong)


def test_every_difference_is_one():
    """What the table lists is recorded, and Chainer's outcome is another."""
    for name in DIFFERENCES.keys() & RECORDED.keys():
        for case, expected in DIFFERENCES[name].items():
            recorded = RECORDED[name][case]
            if expected is COMPUTES:
                assert "error" in recorded, case
            else:
                assert not agrees(case, recorded, expected), case


def test_hundreds_of_outcomes_are_recorded():
    count = sum(map(len, RECORDED.values()))
    differing = sum(len(DIFFERENCES.get(name, ())) for name in RECORDED)
    assert count >= 300 and differing < count / 10
