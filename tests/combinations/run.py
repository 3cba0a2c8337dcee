"""What a rank works with, and how it runs a row."""

from __future__ import annotations

import contextlib
import dataclasses
import io
from typing import Any, NamedTuple

import numpy

import renga
from renga.communicators import RankFailed
from renga.serializers import load_npz, save_npz
from tests.combinations.row import STEPS


@dataclasses.dataclass
class Trained:
    """A model as the loop's variable has it, as its loss calls it; its optimizer."""

    model: Any
    program: Any
    optimizer: Any


class Run:
    """The objects of a training loop on one rank.

    Args:
        rank: among the ranks with samples of their own.
        is_first: whether it is rank 0 of all, as every replica of a reference is.
        row: what it runs.
        kind: of data.
        is_exact: whether the result is that of the reference.
        column: how to update, evaluate and save.
    """

    def __init__(self, rank, is_first, row, kind, is_exact, column):
        self.rank = rank
        self.is_first = is_first
        self.row = row
        self.kind = kind
        self.is_exact = is_exact
        self.column = column
        self.step = 0
        self.trained: list[Trained] = []
        self.saved: dict[str, Any] = {}  # what else is saved, by name
        self.observed: list[float] = []
        self.samples = 0  # of the batch
        self.parts: list[Any] = []  # observations of an update, with their weights

    model = property(lambda self: self.trained[0].model)
    program = property(lambda self: self.trained[0].program)
    optimizer = property(lambda self: self.trained[0].optimizer)

    def params(self, prefix=""):
        """The parameters of this rank whose paths begin so."""
        named = self.model.namedparams()
        return [param for path, param in named if path.startswith(prefix)]

    def update(self, loss=None, *args, which=0, **kwargs):
        """An update by a loss, or by the gradients that the parameters have."""
        observation: dict[str, Any] = {}
        with renga.Reporter().scope(observation):
            self.column.update(self.trained[which], loss, args, kwargs)
        values = [number(observation[key]) for key in sorted(observation)]
        self.parts.append((self.samples, values))

    @contextlib.contextmanager
    def observing_one_update(self):
        """A context of an update by several batches: observes the means over them."""
        self.parts = []
        yield
        weights = [weight for weight, _ in self.parts]
        if sum(weights) and self.parts[0][1]:
            values = [values for weight, values in self.parts if weight]
            kept = [weight for weight in weights if weight]
            self.observed += list(numpy.average(values, axis=0, weights=kept))

    def evaluate(self, x):
        """Observes the model's result for ``x`` in test mode."""
        with renga.using_config("train", False), renga.no_backprop_mode():
            y = self.column.evaluate(self.trained[0], x)
        self.observed.append(float(numpy.mean(renga.as_array(y) ** 2)))

    def objects(self):
        """What is saved, by name."""
        found = dict(self.saved)
        for i, each in enumerate(self.trained):
            found[f"model {i}"], found[f"optimizer {i}"] = each.model, each.optimizer
        return found

    def save(self, is_last=True):
        """Bytes of files by name; the last ones are compared."""
        files = {}
        with self.column.saving(self, is_last):
            for name, obj in self.objects().items():
                file = io.BytesIO()
                save_npz(file, obj, compression=False)
                files[name] = file.getvalue()
        return files

    def load(self, files):
        """Loads them; without any only takes part."""
        with self.column.saving(self, is_last=False):
            for name, obj in self.objects().items():
                if files is not None:
                    load_npz(io.BytesIO(files[name]), obj)


def number(value):
    return float(getattr(value, "array", value))


class Failure(NamedTuple):
    """An exception in a step, and the names of the parameters that changed in it."""

    step: int
    error: BaseException
    changed: list[str]


@dataclasses.dataclass
class Result:
    """What the ranks have in the end, in rank order."""

    files: list[dict[str, bytes]] = dataclasses.field(default_factory=list)
    observed: list[list[float]] = dataclasses.field(default_factory=list)
    unmoved: set[str] = dataclasses.field(default_factory=set)  # a reference's arrays


def run_steps(row, run, ranks, first, last, note):
    """The steps of a loop on one rank."""
    for step in range(first, last):
        run.step = step
        with unchanged(run, note):
            row.each("before", run, step)
        batch = own_batch(row, run, ranks)
        for index in range(row.updates):
            with unchanged(run, note):
                update(row, run, run.column.batches(*batch), index)
        row.each("after", run, step)


def own_batch(row, run, ranks):
    """This rank's samples of a step."""
    shares = row.shares(run.step, ranks)
    x, t = row.data(row.network_class(run.kind), run.step, sum(shares))
    own = slice(sum(shares[: run.rank]), sum(shares[: run.rank + 1]))
    return x[own], t[own]


def update(row, run, batches, index):
    """An update by batches, the one with this index in the step."""
    with run.observing_one_update():
        for x, t in batches:
            run.samples = row.weight(x, t)
            row.update(run, x, t, index)


@contextlib.contextmanager
def unchanged(run, note):
    """Notes an exception, with the parameters that have changed before it."""
    programs = [each.program for each in run.trained]
    params = [p for program in programs for p in program.params(include_uninit=False)]
    before = [(param, host(param.array)) for param in params if not param.is_meta]
    try:
        yield
    except BaseException as error:
        if isinstance(error, RankFailed) and run.step == 0:
            raise  # it may have got rank 0's weights before another rank refused
        changed = [
            param.name
            for param, array in before
            if not param.is_meta  # another stage's, which a rank has freed
            and not numpy.array_equal(host(param.array), array, equal_nan=True)
        ]
        note(Failure(run.step, error, changed))
        raise


def host(array):
    """A copy in the host's memory."""
    return numpy.array(renga.backends.cuda.to_cpu(array))


def make(row, kind, seed, wrap):
    """Networks and optimizers, with ``wrap(model, optimizer, example)`` around them."""
    for _ in range(row.networks):
        model = row.network(kind, seed)
        row.each("build", model)
        example = row.data(type(model), 0, 4)[0]
        yield Trained(*wrap(model, row.optimizer(), example))


def bounds(phases):
    """First and last steps of phases, with the numbers of ranks."""
    first = 0
    for last, ranks in phases:
        yield first, last, ranks
        first = last
    assert first == STEPS
