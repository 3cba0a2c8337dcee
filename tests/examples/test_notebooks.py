"""The notebooks run from top to bottom, small, and are stored with their outputs."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

NOTEBOOKS = Path(__file__).resolve().parents[2] / "examples" / "notebooks"
nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")
pytestmark = [
    pytest.mark.skipif("OMPI_COMM_WORLD_RANK" in os.environ, reason="starts mpiexec"),
    pytest.mark.timeout(300),
]


def pictures(notebook):
    outputs = (output for cell in notebook.cells for output in cell.get("outputs", ()))
    return sum("image/png" in output.get("data", ()) for output in outputs)


def texts(notebook):
    outputs = (output for cell in notebook.cells for output in cell.get("outputs", ()))
    return "".join(output.get("text", "") for output in outputs)


@pytest.mark.parametrize("name", ["vgg", "dcgan", "pipelines"])
def test_notebook(name, monkeypatch):
    kept = nbformat.read(NOTEBOOKS / f"{name}.ipynb", as_version=4)
    small = {"STEPS": 6, "EPOCHS": 1, "WIDTH": 2, "BATCH": 8}
    small |= {"IMAGES": 160, "WORDS": 1000, "SIZE": 32, "LONG_STEPS": 6}
    for what, value in small.items():
        monkeypatch.setenv(f"RENGA_NOTEBOOK_{what}", str(value))
    resources = {"metadata": {"path": str(NOTEBOOKS)}}
    run = nbformat.from_dict(kept)
    for cell in run.cells:
        cell.get("outputs", []).clear()
    nbclient.NotebookClient(run, timeout=300, resources=resources).execute()
    assert pictures(run) == pictures(kept) >= 4
    if name == "vgg":
        # The last column: how far a strategy's first loss is from that of one process.
        rows = re.findall(r"^(\w+) .* (\d\.\de[+-]\d+)$", texts(run), re.MULTILINE)
        assert [name for name, _ in rows] == ["alone", "data", "channel", "spatial"]
        assert max(float(difference) for _, difference in rows) < 1e-4
    if name == "dcgan":
        rows = re.findall(r"^(\w+) +largest difference .*: (\S+)$", texts(run), re.M)
        assert [name for name, _ in rows] == ["alone", "data", "channel", "spatial"]
        assert max(float(difference) for _, difference in rows) < 1e-5
