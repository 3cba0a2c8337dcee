"""Models on one process, and data-, channel- and spatially parallel on two."""

from __future__ import annotations

import copy
import importlib
import json
import os
from pathlib import Path

import numpy
import pytest

import renga
import renga.functions as F
from renga.communicators import local
from renga.distributed import parallelize
from tests.scripts import run_script

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

pytestmark = pytest.mark.skipif(
    "OMPI_COMM_WORLD_RANK" in os.environ, reason="starts mpiexec"
)


def run(script: str, ranks: int, *options: object) -> str:
    done = run_script(EXAMPLES / script, *options, cwd=Path.cwd(), ranks=ranks)
    assert done.returncode == 0, done.stderr
    return done.stdout


SMALL = ["--steps", 2, "--batch", 16, "--width", 4]


def losses_of(model, strategy, out):
    ranks = 1 if strategy == "alone" else 2
    options = [*SMALL, "--strategy", strategy]
    if model == "dcgan":
        run("02_parallel/train_dcgan.py", ranks, *options, "--out", out)
        with numpy.load(out / "dcgan.npz") as file:
            return file["losses"]
    printed = run(f"02_parallel/train_{model}.py", ranks, *options)
    return json.loads(printed.splitlines()[-1])["losses"]


# The notebooks have every strategy.
@pytest.mark.parametrize("model", ["vgg", "dcgan"])
def test_a_strategy_begins_with_the_loss_of_one_process(model, tmp_path):
    alone = losses_of(model, "alone", tmp_path)
    losses = losses_of(model, "spatial", tmp_path)
    numpy.testing.assert_allclose(losses[0], alone[0], rtol=1e-4)
    assert numpy.isfinite(losses).all()


def vgg_losses(comm, serial, strategy, images, labels):
    """Three losses in float64, where no rounding decides a maximum."""
    model = serial
    with renga.using_config("dtype", numpy.float64):
        if strategy is not None:
            model = parallelize(serial, comm, strategy, images)
        optimizer = renga.optimizers.MomentumSGD(0.01).setup(model)
        losses = []
        for _ in range(3):
            loss = F.softmax_cross_entropy(model(images), labels)
            model.cleargrads()
            loss.backward()
            optimizer.update()
            losses.append(float(loss.array))
        return losses


@pytest.mark.parametrize("strategy", ["channel", "spatial"])
def test_vgg_in_parts_is_vgg(strategy, monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES / "02_parallel"))
    make = importlib.import_module("vgg").VGG16
    random = numpy.random.default_rng(0)
    images, labels = random.normal(0, 1, (6, 3, 32, 32)), random.integers(0, 10, 6)
    with renga.using_config("dtype", numpy.float64):
        serial = make(width=2)
    args = images, labels.astype("i")
    expected = vgg_losses(None, copy.deepcopy(serial), None, *args)
    for found in local.run(vgg_losses, serial, strategy, *args, ranks=2):
        numpy.testing.assert_allclose(found, expected, rtol=1e-9)


def test_a_planned_network_trains_as_on_one_process(tmp_path):
    losses = {}
    for ranks in (1, 2):
        out = tmp_path / str(ranks)
        text = run(
            "09_planning/plan.py", ranks, "--seconds", 0.2, "--batch", 8, "--out", out
        )
        steps = [line for line in text.splitlines() if line.startswith("step")]
        losses[ranks] = [float(line.split()[3]) for line in steps]
        assert "predicted" in text and (out / "plan.json").exists()
    assert len(losses[1]) == 3 and losses[1][2] < losses[1][0]
    numpy.testing.assert_allclose(losses[2], losses[1], rtol=0, atol=2e-4)


def test_a_described_language_model_is_planned(tmp_path):
    options = ["--model", "LSTM", "--described", "--batch", 4, "--seconds", 0.2]
    text = run("09_planning/plan.py", 1, *options, "--out", tmp_path)
    rows = [line for line in text.splitlines() if "; data parallelism" in line]
    assert len(rows) == 3 and "/layer2/lateral" in text


def test_a_described_network_is_planned(tmp_path):
    options = ["--network", "AlexNet", "--seconds", 0.5, "--out", tmp_path]
    text = run("09_planning/plan.py", 1, *options)
    rows = [line.split() for line in text.splitlines() if "; data parall" in line]
    assert [row[2] for row in rows] == ["4", "16", "64"]
    for row in rows:  # data parallelism is among the candidates
        assert float(row[-2]) <= float(row[-5])


def test_segmentation_learns_and_does_not_depend_on_the_grid(tmp_path):
    lines = {}
    for ranks, grid in ((1, [1]), (4, [2, 2])):
        options = ["--size", 96, "--steps", 6, "--out", tmp_path, "--grid", *grid]
        out = run("07_spatial/segment.py", ranks, *options)
        lines[ranks] = [line for line in out.splitlines() if line.startswith("step")]
    first, *_, last = (float(line.split()[3].rstrip(",")) for line in lines[4])
    assert last < 0.7 * first
    assert lines[1] == lines[4]
    assert (tmp_path / "segmented.png").stat().st_size > 0
