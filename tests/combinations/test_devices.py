"""Cells on two devices of the stand-in for CUDA, where a device changes the path."""

from __future__ import annotations

import sys

import pytest

import renga
from renga.backends import cuda
from renga.communicators.nccl.staged import StagedCommunicator
from tests.combinations.column import Column
from tests.combinations.comparison import check, check_refused
from tests.combinations.rows import ROWS as ALL_ROWS
from tests.combinations.table import CELLS

pytestmark = pytest.mark.skipif(
    getattr(sys.modules.get("renga._cuda"), "__name__", "") != "renga._cuda_standin",
    reason="needs the environment variable RENGA_CUDA_STANDIN",
)
ROWS = (
    *("plain program", "tied parameter", "0-d parameter", "batch normalization"),
    *("frozen and unfrozen later", "weights loaded between updates", "Adam"),
    *("gradient clipping", "uneven batches", "mixed16 with an overflow on one rank"),
    *("moving average", "save and resume", "evaluation between updates", "float32"),
)
COLUMNS = (
    *("multi-node optimizer", "double buffering", 'shard="states"', "accumulate(2)"),
    *('shard="parameters"', "local SGD, every=1", "elastic averaging", "channel"),
)

OPEN: dict[str, str] = {}


def on_devices(column):
    """The column with a device for each rank."""

    class OnDevices(type(column)):
        def on_rank(self, comm, *args):
            comm = StagedCommunicator(comm.native)
            device = device_of(comm.rank)
            device.use()
            found = super().on_rank(comm, *args)
            device.device.synchronize()
            return found

        def wrap(self, comm, model, optimizer, example, row):
            device = device_of(comm.rank)
            if self.own_samples:
                model.to_device(device)
            wrapped = super().wrap(comm, model, optimizer, example, row)
            wrapped[0].to_device(device)
            return wrapped

        def batches(self, x, t):
            return [tuple(map(cuda.to_gpu, batch)) for batch in super().batches(x, t)]

        def evaluate(self, trained, x):
            return cuda.to_cpu(super().evaluate(trained, cuda.to_gpu(x)).array)

    return OnDevices()


def device_of(rank):
    return renga.get_device(f"@cupy:{rank}")


def parameters():
    """The cells, of which those that are open have to fail."""
    for each in CELLS:
        if each.row.name in ROWS and each.column.name in COLUMNS:
            marks = []
            if each.name in OPEN:
                marks.append(pytest.mark.xfail(reason=OPEN[each.name], strict=True))
            yield pytest.param(each, id=each.name, marks=marks)


@pytest.mark.parametrize("cell", list(parameters()))
def test_cell(cell, monkeypatch):
    monkeypatch.setenv("RENGA_TIMEOUT", "20")
    cuda.load_plugin()
    column = on_devices(cell.column)
    if cell.refused is not None:
        check_refused(cell.row, column, cell.refused)
    else:
        check(cell.row, column)


class RecordedSteps(Column):
    """One process, whose steps are recorded as graphs of CUDA."""

    name = "static_step"
    ranks = 1

    def wrap(self, comm, model, optimizer, example, row):
        model.to_device("@cupy:0")
        self.steps = {}
        return model, model, optimizer.setup(model)

    def update(self, trained, loss, args, kwargs):
        if not args and not kwargs:  # a closure is another one in each step
            trained.optimizer.update(loss)
            return
        step = self.steps.get(trained.optimizer)
        if step is None:
            step = renga.static_step(loss, trained.optimizer)
            self.steps[trained.optimizer] = step
        step(*args, **kwargs)

    def batches(self, x, t):
        return [(cuda.to_gpu(x), cuda.to_gpu(t))]

    def evaluate(self, trained, x):
        return cuda.to_cpu(trained.model(cuda.to_gpu(x)).array)


REFUSED = {
    "stateful recurrent link": "'h', which the call before has set",
    "two networks with two optimizers": "a variable that is not the chain's",
}
# These are not about one process and a device.
ELSEWHERE = ("two parameters with one array", "save and resume, other ranks")


@pytest.mark.parametrize(
    "row", [row for row in ALL_ROWS if row.name not in ELSEWHERE], ids=str
)
def test_recorded_steps(row):
    cuda.load_plugin()
    column = RecordedSteps()
    if row.name in REFUSED:
        check_refused(row, column, REFUSED[row.name])
    else:
        check(row, column)
