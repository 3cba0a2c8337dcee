"""Networks that are timed beside PyTorch's train, and the command prints its table."""

import argparse
import ast
import inspect
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tests.benchmarks.networks
from tests.benchmarks.networks import __main__ as command
from tests.benchmarks.networks.library import NETWORKS
from tests.benchmarks.training import Comparison, comparison

FOLDER = Path(tests.benchmarks.networks.__file__).parent

# Some of each file, smaller than those that are timed.
SMALLER = {
    "lenet": {"batch": 2},
    "res2net": {"batch": 2, "size": 4},
    "swin": {"batch": 1, "size": 6, "channels": 16, "heads": 2, "window": 3},
    "diffusion": {"batch": 2, "size": 4, "channels": 8},
    "stylegan": {"batch": 2, "size": 2, "channels": 8},
    "glow": {"batch": 2, "size": 4},
    "pixelcnn": {"batch": 1, "size": 4, "channels": 8},
    "rnn": {"batch": 2, "length": 3, "units": 16, "words": 20},
    "llama": {"batch": 2, "length": 4, "units": 16, "heads": 2, "words": 20},
    "skipgram": {"batch": 8, "words": 20, "units": 8},
    "gat": {"nodes": 10, "edges": 30, "units": 16},
    "gin": {"nodes": 10, "edges": 30, "units": 8},
    "dgcnn": {"batch": 2, "points": 8, "neighbours": 3},
    "burgers": {"points": 8, "units": 8},
    "capsules": {"batch": 2, "channels": 4},
    "video_resnet": {"batch": 4, "size": 6},
    "conv_lstm": {"batch": 1, "length": 2, "size": 4, "channels": 4},
    "mamba": {"batch": 2, "length": 3, "units": 8, "states": 2},
    "vq_vae": {"batch": 2, "size": 8, "codes": 8, "units": 8},
    "deepfm": {"batch": 8, "fields": 4, "rows": 10},
}


@pytest.mark.parametrize("name", SMALLER)
def test_the_loss_falls(name):
    step = command.function_of("renga", name, **SMALLER[name])
    losses = [step() for _ in range(3)]
    assert np.isfinite(losses).all()
    assert losses[0] > losses[1] > losses[2]


@pytest.mark.parametrize("name", ["glow", "rnn", "gin"])
def test_a_mixed_step_has_nearly_the_same_loss(name):
    losses = {}
    for dtype in ("float32", "mixed"):
        losses[dtype] = command.function_of("renga", name, dtype, **SMALLER[name])()
    assert losses["mixed"] != losses["float32"]
    np.testing.assert_allclose(losses["mixed"], losses["float32"], rtol=0.02)


def test_evaluation_changes_nothing():
    evaluate = command.function_of("renga", "res2net", evaluate=True, batch=2, size=4)
    first = evaluate()
    assert np.isfinite(first) and evaluate() == first


def test_every_network_names_its_paper():
    assert len(NETWORKS) == 48
    for build in NETWORKS.values():
        assert re.search(r"\D[12]\d{3}\)", inspect.getdoc(build)), build


def tree_of(name):
    return ast.parse((FOLDER / name).read_text())


def methods(name):
    """The arguments of each public method of a side's class."""
    (side,) = (c for c in tree_of(name).body if getattr(c, "name", "") == "Side")
    functions = [f for f in side.body if isinstance(f, ast.FunctionDef)]
    return {f.name: ast.unparse(f.args) for f in functions}


def test_the_sides_have_the_same_methods():
    renga, torch = methods("renga_side.py"), methods("torch_side.py")
    only_torch = {"laid_out", "outputs", "images", "volumes"}
    assert {*torch} - {*renga} == only_torch
    for name in {*renga} - {"__init__", "add"}:
        assert torch[name] == renga[name], name


@pytest.mark.parametrize("file", sorted(path.name for path in FOLDER.glob("*.py")))
def test_a_side_imports_its_library_only(file):
    libraries = set()
    for node in ast.walk(tree_of(file)):
        if isinstance(node, ast.Import):
            libraries |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            libraries.add(node.module.split(".")[0])
    expected = {"renga_side.py": {"renga"}, "torch_side.py": {"torch"}}
    assert libraries & {"renga", "torch"} == expected.get(file, set())


def test_a_comparison_is_with_the_best_other_side():
    rounds = {"renga": [2.0, 1.0], "torch": [4.0, 6.0], "channels-last": [3.0, 5.0]}
    milliseconds = {"renga": 1.0, "torch": 4.0, "channels-last": 3.0}
    assert comparison(rounds, min) == Comparison(milliseconds, 3.0, 1.5, 5.0)
    milliseconds = {"renga": 1.5, "torch": 5.0, "channels-last": 4.0}
    assert comparison(rounds) == Comparison(milliseconds, 4 / 1.5, 1.5, 5.0)


def test_a_side_that_fails_has_an_infinite_time(monkeypatch):
    def numbers_of(python, module, *arguments, **environment):
        if "channels-last" in arguments:
            raise subprocess.CalledProcessError(1, python)
        return [4.0 if "torch" in arguments else 2.0, 0.5]

    monkeypatch.setattr(command, "numbers_of", numbers_of)
    options = argparse.Namespace(peer="python", dtype="float32", evaluate=False)
    options.rounds, options.steps, options.threads = 2, 1, 1
    found = command.compare("glow", ["renga", "torch", "channels-last"], options)
    milliseconds = {"renga": 2.0, "torch": 4.0, "channels-last": float("inf")}
    assert found == Comparison(milliseconds, 2.0, 2.0, 2.0)


def test_measure_gives_milliseconds_and_the_first_loss(monkeypatch):
    losses = iter([0.5, *[0.25] * 6])
    monkeypatch.setattr(command, "function_of", lambda *_: lambda: next(losses))
    options = argparse.Namespace(dtype="float32", evaluate=False, steps=3)
    milliseconds, first = command.measure("renga", "glow", options)
    assert 0 < milliseconds < 1000
    assert first == 0.5


def output_of(monkeypatch, capsys, *arguments):
    def compare(name, sides, options):
        times = {"renga": 2.0, "torch": 1234.567, "channels-last": 3.0, "compiled": 2.5}
        return Comparison({side: times[side] for side in sides}, 1.25, 1.2, 1.333)

    monkeypatch.setattr(command, "compare", compare)
    monkeypatch.setattr(sys, "argv", ["networks", *arguments])
    command.main()
    return capsys.readouterr().out.splitlines()


def test_the_table(monkeypatch, capsys):
    assert output_of(monkeypatch, capsys, "linear_attention", "gat") == [
        "         network         renga ms         torch ms channels-last ms"
        "   ratio  (spread)",
        "linear_attention             2.00          1234.57             3.00"
        "    1.25  (1.20-1.33)",
        "             gat             2.00          1234.57             3.00"
        "    1.25  (1.20-1.33)",
    ]


def test_the_table_of_compiled_networks(monkeypatch, capsys):
    first, *rows = output_of(monkeypatch, capsys, "--compiled")
    assert "channels-last ms      compiled ms   ratio" in first
    assert len(rows) == len(NETWORKS)
    assert len({len(row) for row in rows}) == 1


def test_an_unknown_network_is_refused(monkeypatch, capsys):
    with pytest.raises(SystemExit):
        output_of(monkeypatch, capsys, "gat", "resnext")
    assert "got ['resnext']" in capsys.readouterr().err
