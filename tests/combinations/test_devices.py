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
    *("array of before the first update changed in place", "weights replaced"),
    *("gradient clipping", "uneven batches", "mixed16 with an overflow on one rank"),
    *("moving average", "save and resume", "evaluation between updates", "float32"),
)
COLUMNS = (
    *("multi-node optimizer", "double buffering", 'shard="states"', "accumulate(2)"),
    *('shard="parameters"', "local SGD, every=1", "elastic averaging", "channel"),
)
# In which steps may be recorded: the others wrap the model's operations. Rows are those
# in which ranks and a recorded step could get into each other's way.
STATIC_ROWS = (
    *("plain program", "batch normalization", "gradient clipping", "uneven batches"),
    *("mixed16 with an overflow on one rank", "save and resume"),
)
STATIC_COLUMNS = (
    *("multi-node optimizer", "double buffering", 'shard="states"'),
    *("local SGD, every=1", "elastic averaging"),
)

OPEN: dict[str, str] = {}


def on_devices(column, *others):
    """The column with a device for each rank, and with what other classes change."""

    class OnDevices(*others, type(column)):
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


def parameters(columns=COLUMNS, rows=ROWS):
    """The cells, of which those that are open have to fail."""
    for each in CELLS:
        if each.row.name in rows and each.column.name in columns:
            marks = []
            if each.name in OPEN:
                marks.append(pytest.mark.xfail(reason=OPEN[each.name], strict=True))
            yield pytest.param(each, id=each.name, marks=marks)


class StaticSteps:
    """Updates by a loss are recorded as graphs of CUDA."""

    def update(self, trained, loss, args, kwargs):
        if loss is None or not (args or kwargs):  # a closure is another one each time
            super().update(trained, loss, args, kwargs)
            return
        step = getattr(trained, "step", None)
        if step is None:
            step = trained.step = renga.static_step(loss, trained.optimizer)
        step(*args, **kwargs)


@pytest.mark.parametrize("cell", list(parameters()))
def test_cell(cell, monkeypatch):
    check_on_devices(cell, monkeypatch)


@pytest.mark.parametrize("cell", list(parameters(STATIC_COLUMNS, STATIC_ROWS)))
def test_cell_with_static_steps(cell, monkeypatch):
    check_on_devices(cell, monkeypatch, StaticSteps)


def check_on_devices(cell, monkeypatch, *others):
    monkeypatch.setenv("RENGA_TIMEOUT", "20")
    cuda.load_plugin()
    column = on_devices(cell.column, *others)
    if cell.refused is not None:
        check_refused(cell.row, column, cell.refused)
    else:
        check(cell.row, column)


class OneDevice(StaticSteps, Column):
    """One process."""

    ranks = 1

    def wrap(self, comm, model, optimizer, example, row):
        model.to_device("@cupy:0")
        return model, model, optimizer.setup(model)

    def batches(self, x, t):
        return [(cuda.to_gpu(x), cuda.to_gpu(t))]

    def evaluate(self, trained, x):
        return cuda.to_cpu(trained.model(cuda.to_gpu(x)).array)


REFUSED = {
    "persistent count of calls": "it sets 'count'",
    "number that the model keeps of an activation": "cannot be recorded",
    "calls noted in attributes": "it changes what is in 'notes'",
    "arrays that the model changes in its calls": "static_step: ",
    "stateful recurrent link": "'h', which the call before has set",
    "two networks with two optimizers": "a variable that is not the chain's",
}
# These are not about one process and a device, or not about recorded steps: CuPy's
# stand-in copies what a weight standardization creates from the host, as it computes
# power iterations there, a Variable that is no parameter stays on the host, and a step
# that has been recorded does not run its loss function again, which would raise, or
# have other targets.
ELSEWHERE = (
    *("two parameters with one array", "save and resume, other ranks"),
    *("weight standardization, later", "a loss that raises, and is tried again"),
    *("targets in a closure", "spectral normalization", "leaf beside the parameters"),
)


@pytest.mark.parametrize(
    "row", [row for row in ALL_ROWS if row.name not in ELSEWHERE], ids=str
)
def test_recorded_steps(row):
    cuda.load_plugin()
    column = OneDevice()
    if row.name in REFUSED:
        check_refused(row, column, REFUSED[row.name])
    else:
        check(row, column)
