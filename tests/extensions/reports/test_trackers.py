"""What trackers are told; the services themselves are stand-ins, except TensorBoard."""

import sys
import types

import numpy
import pytest

import renga
import renga.links as L
from renga.iterators import SerialIterator
from renga.training import StandardUpdater, Trainer, extensions

DATA = [(numpy.full(3, i, "f"), numpy.int32(0)) for i in range(6)]


class Model(L.Linear):
    """Reports the sum of its input."""

    def __init__(self):
        super().__init__(3, 1)

    def forward(self, x, t):
        renga.report({"sum": x.sum()}, self)
        return renga.functions.sum(super().forward(x))


def run(tmp_path, tracker):
    optimizer = renga.optimizers.SGD(1e-3).setup(Model())
    updater = StandardUpdater(SerialIterator(DATA, 2, shuffle=False), optimizer)
    trainer = Trainer(updater, (2, "epoch"), out=tmp_path)
    trainer.extend(tracker)
    trainer.run()


# The batches 0 1, 2 3 and 4 5 of each epoch have the sums 3, 15 and 27, and this mean.
EXPECTED = [
    ({"main/sum": 15.0, "epoch": 1.0}, 3),
    ({"main/sum": 15.0, "epoch": 2.0}, 6),
]


def test_tensorboard_gets_scalars(tmp_path):
    calls = []
    writer = types.SimpleNamespace(
        add_scalar=lambda *args: calls.append(args), flush=lambda: None
    )
    run(tmp_path, extensions.TensorBoardReport(writer))
    assert calls == [
        (name, value, iteration)
        for values, iteration in EXPECTED
        for name, value in values.items()
    ]


def test_tensorboard_files(tmp_path):
    pytest.importorskip("tensorboardX")
    run(tmp_path, extensions.TensorBoardReport(interval=(3, "iteration")))
    (file,) = (tmp_path / "tensorboard").iterdir()
    assert b"main/sum" in file.read_bytes()


def test_wandb_run(tmp_path, monkeypatch):
    calls = []
    run_of = types.SimpleNamespace(
        log=lambda values, step: calls.append((values, step)),
        finish=lambda: calls.append("finish"),
    )
    wandb = types.SimpleNamespace(init=lambda **o: calls.append(o) or run_of)
    monkeypatch.setitem(sys.modules, "wandb", wandb)
    run(tmp_path, extensions.WandbReport(project="p"))
    assert calls == [{"project": "p"}, *EXPECTED, "finish"]
    calls.clear()
    run(tmp_path, extensions.WandbReport(run_of))  # the caller's run is not ended
    assert calls == EXPECTED


@pytest.mark.parametrize("active", [False, True])
def test_mlflow_run(tmp_path, monkeypatch, active):
    calls = []
    mlflow = types.SimpleNamespace(
        active_run=lambda: object() if active else None,
        start_run=lambda **o: calls.append(o),
        log_metrics=lambda values, step: calls.append((values, step)),
        end_run=lambda: calls.append("end"),
    )
    monkeypatch.setitem(sys.modules, "mlflow", mlflow)
    run(tmp_path, extensions.MLflowReport(run_name="r"))
    expected = EXPECTED if active else [{"run_name": "r"}, *EXPECTED, "end"]
    assert calls == expected


@pytest.mark.parametrize(
    ("tracker", "package", "extra"),
    [
        (extensions.TensorBoardReport, "tensorboardX", "tensorboard"),
        (extensions.WandbReport, "wandb", "wandb"),
        (extensions.MLflowReport, "mlflow", "mlflow"),
    ],
)
def test_missing_packages_are_named(tmp_path, monkeypatch, tracker, package, extra):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=rf"package {package}.*renga\[{extra}\]"):
        run(tmp_path, tracker())
