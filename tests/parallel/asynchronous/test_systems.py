"""The calls on the page of systems train."""

import math
import re
from pathlib import Path

import numpy as np
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga import distributed, optimizers
from renga.communicators import local
from renga.distributed import asynchronous, compression
from renga.pipeline import Pipeline

PAGE = Path(__file__).parents[3] / "docs" / "parallel" / "systems.md"
NAMES = {"math": math, "compression": compression, "Pipeline": Pipeline}
for module in (distributed, asynchronous, optimizers):
    NAMES.update(vars(module))


def systems():
    """The calls of each system, in order."""
    found = {}
    for line in PAGE.read_text("utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip().split(" | ")]
        calls = re.findall(r"`([^`]+\))`", cells[-1])
        if line.startswith("| ") and calls:
            found[cells[0].strip("| ")] = calls
    return found


def test_all_systems_of_the_survey_are_there():
    named = " ".join(systems())
    for name in (
        *("DistBelief", "Project Adam", "Petuum (Bösen)", "MXNet", "SINGA", "CNTK"),
        *("BigDL", "Rudra", "FireCaffe", "TensorFlow", "Horovod", "ChainerMN", "GeePS"),
    ):
        assert name in named
    assert len(systems()) == PAGE.read_text("utf-8").count("\n| ") - 4 * 1


def accuracy_of_divided(model, x, t):
    """After training by the same samples on all ranks."""
    optimizer = optimizers.SGD(0.1).setup(model)
    if not isinstance(model, Pipeline):
        for _ in range(60):
            optimizer.update(model, x, t)
        model(x, t)
        return float(model.accuracy.array)
    for _ in range(60):
        model.train_batch(optimizer, model.model, (x, t))
    with model.gathered_parameters():
        model.model(x, t)
        return float(model.model.accuracy.array)


@pytest.mark.parametrize("name", systems())
def test_the_calls_train(name):
    calls = systems()[name]
    random = np.random.RandomState(0)
    t = (np.arange(160) % 2).astype("int32")
    x = (random.normal(size=(160, 4)) + 1.5 * (2 * t[:, None] - 1)).astype("float32")

    def act(comm):
        model = L.Classifier(renga.Sequential(L.Linear(4, 8), F.tanh, L.Linear(8, 2)))
        values = {**NAMES, "model": model, "comm": comm, "x": x, "t": t}
        for call in calls:
            made = eval(call, values)
        if isinstance(made, renga.Link):
            return accuracy_of_divided(made, x, t)
        optimizer = made
        if getattr(optimizer, "is_server", False) and not optimizer.is_worker:
            return optimizer.serve()
        own = slice(comm.rank, None, comm.size)
        if getattr(optimizer, "is_server", True) is False:  # the only one that computes
            own = slice(None)
        for _ in range(60):
            optimizer.update(model, x[own], t[own])
        if isinstance(optimizer, asynchronous.AsynchronousOptimizer):
            optimizer.join()
            with optimizer.averaged():
                model(x, t)
        else:
            model(x, t)
        return float(model.accuracy.array)

    # Compression is for nodes of their own.
    nodes = 2 if "compression" in "".join(calls) else 1
    results = local.run(act, ranks=2, nodes=nodes)
    for accuracy in results:
        assert accuracy is None or accuracy > 0.95
    assert results[-1] is not None
