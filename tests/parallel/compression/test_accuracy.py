"""Compressed training learns as well as training without compression."""

import functools
import importlib.util
from pathlib import Path

import numpy as np
import pytest

from renga.communicators import local

SCRIPT = Path(__file__).parents[3] / "docs" / "examples" / "compression.py"
spec = importlib.util.spec_from_file_location("compression_example", SCRIPT)
example = importlib.util.module_from_spec(spec)
spec.loader.exec_module(example)


@functools.cache
def accuracy(name):
    """Percent of test images, over the last three of 20 epochs."""
    pytest.importorskip("sklearn")
    accuracies, _ = local.run(example.train, name, 0, 20, ranks=2, nodes=2)[0]
    return np.mean(accuracies[-3:])


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in example.WAYS if name != "none"])
def test_accuracy_on_digits(name):
    assert accuracy("none") > 96
    assert accuracy(name) >= accuracy("none") - 0.5


def test_the_example_draws(tmp_path, monkeypatch):
    pytest.importorskip("sklearn")
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(
        example, "WAYS", {"none": None, "OneBit": example.WAYS["OneBit"]}
    )
    picture = tmp_path / "curves.svg"
    arguments = ["compression.py", str(picture), "--epochs", "1", "--seeds", "1"]
    monkeypatch.setattr("sys.argv", arguments)
    example.main()
    assert "<svg" in picture.read_text()
