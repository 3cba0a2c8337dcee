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


# Those that send little of a gradient at once catch up later.
EPOCHS = dict.fromkeys(example.WAYS, 14)
EPOCHS |= dict.fromkeys(["Cast", "QSGD(4)", "TernGrad", "PowerSGD(4)"], 8)


@functools.cache
def accuracies(name):
    """Percent of test images after each epoch."""
    pytest.importorskip("sklearn")
    return local.run(example.train, name, 0, EPOCHS[name], ranks=2, nodes=2)[0][0]


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in example.WAYS if name != "none"])
def test_accuracy_on_digits(name):
    last = slice(EPOCHS[name] - 3, EPOCHS[name])
    exact = np.mean(accuracies("none")[last])
    assert exact > 96
    assert np.mean(accuracies(name)[last]) >= exact - 0.5


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
