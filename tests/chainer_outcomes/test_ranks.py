"""What ChainerMN 7.8.1 does on two and three ranks, recorded, and what renga does.

``record.py`` writes the outcomes; ``differences.py`` lists where renga's differ on
purpose. The ranks are processes, and threads of one process.
"""

import json
import os
import tempfile
from pathlib import Path

import pytest

from tests.chainer_outcomes.differences import COMPUTES, DIFFERENCES
from tests.chainer_outcomes.test_outcomes import agrees
from tests.scripts import run_script

FOLDER = Path(__file__).parent
SIZES = (2, 3)
RECORDED = {
    size: json.loads((FOLDER / f"recorded/ranks/{size}.json").read_text())
    for size in SIZES
}


def outcomes(size, how):
    """Renga's outcomes of all cases, a list of the ranks' for each."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "outcomes.json"
        done = run_script(
            *(FOLDER / "record.py", "ranks", file),
            *([size] if how == "threads" else []),
            cwd=folder,
            env={**os.environ, "RENGA_TIMEOUT": "30"},
            chainer=True,
            ranks=size if how == "processes" else 1,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(file.read_text())


@pytest.mark.parametrize("how", ["threads", "processes"])
@pytest.mark.parametrize("size", SIZES)
def test_outcomes(size, how):
    if how == "processes":
        pytest.importorskip("renga._communicators_mpi", exc_type=ImportError)
        if "OMPI_COMM_WORLD_RANK" in os.environ:
            pytest.skip("starts mpiexec")
    differences = {case: [each] * size for case, each in DIFFERENCES["ranks"].items()}
    expected, found = {**RECORDED[size], **differences}, outcomes(size, how)
    assert all(len(found[case]) == size for case in expected)
    wrong = [
        f"{case}, rank {rank}: expected {wanted}, got {outcome}"
        for case, each in expected.items()
        for rank, (outcome, wanted) in enumerate(zip(found[case], each))
        if not agrees(case, wanted, outcome)
    ]
    assert not wrong, "\n".join(wrong)


def test_every_difference_is_one():
    """What the table lists is recorded, and some rank's outcome was another."""
    for case, expected in DIFFERENCES["ranks"].items():
        for recorded in RECORDED.values():
            if expected is COMPUTES:
                assert any("error" in outcome for outcome in recorded[case]), case
            else:
                assert not all(agrees(case, o, expected) for o in recorded[case]), case
