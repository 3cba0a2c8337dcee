"""References: replicas of a plain program, one after another in one process.

Each replica has a model and an optimizer, and runs the row's steps on its samples. What
combines the replicas in a step is a formula, written with NumPy.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from typing import Any

import numpy

import renga
from tests.combinations.row import STEPS
from tests.combinations.run import Result, Run, Trained, make, own_batch, update


@dataclasses.dataclass
class Part:
    """Gradients by name that a replica has computed of some samples."""

    weight: float
    gradients: dict[str, Any]
    trained: Trained
    replica: Replica
    scale: float  # of the loss


class Replica:
    """How one replica updates: it keeps its gradients for the formula."""

    def __init__(self, rank, draws):
        self.gradients = []
        self.run = None
        self._draws = draws
        self._state = numpy.random.RandomState(rank).get_state()

    @contextlib.contextmanager
    def random(self):
        """A context with NumPy's global generator of this replica, if the row draws."""
        if not self._draws:
            yield
            return
        numpy.random.set_state(self._state)
        yield
        self._state = numpy.random.get_state()

    def update(self, trained, loss, args, kwargs):
        model = trained.model
        external = loss is None
        if not external:
            y = loss(*args, **kwargs)
            model.cleargrads()
            y.backward(loss_scale=trained.optimizer.loss_scale)
        found = {name: p.grad for name, p in distinct(model)}
        found = {k: None if g is None else numpy.array(g) for k, g in found.items()}
        weight = 1 if external else self.run.samples
        scale = 1.0 if external else trained.optimizer.loss_scale or 1.0
        self.gradients.append(Part(weight, found, trained, self, scale))

    def evaluate(self, trained, x):
        return trained.model(x)

    def saving(self, run, is_last):
        return contextlib.nullcontext()


def distinct(model):
    """Each parameter once, with its first name."""
    found = {}
    for name, param in sorted(model.namedparams()):
        found.setdefault(id(param), (name, param))
    return sorted(found.values())


def total(parts):
    """The mean of weighted gradients; a parameter that none has keeps None."""
    mean = {}
    weights = sum(part.weight for part in parts)
    for name in parts[0].gradients:
        terms = [(part.weight, part.gradients[name]) for part in parts if part.weight]
        terms = [(weight, g) for weight, g in terms if g is not None]
        mean[name] = None
        if terms:
            mean[name] = numpy.asarray(sum(w * g for w, g in terms) / weights)
    return mean


def apply(part, gradients, zero_fill=False):
    """An update of a replica by gradients."""
    for name, param in distinct(part.trained.model):
        gradient = gradients[name]
        if gradient is None and zero_fill and param.array is not None:
            gradient = numpy.zeros_like(param.array)
        param.grad = None if gradient is None else gradient.astype(param.dtype)
        # Also where this replica has not used the parameter.
        param.loss_scale = None if part.scale == 1 else part.scale
    with part.replica.random():
        part.trained.optimizer.update()


class Formula:
    """What combines the replicas in a step. Equal formulas have equal references."""

    def __init__(self, zero_fill=False):
        self.zero_fill = zero_fill

    def step(self, parts):
        """An update, of the gradients of each replica in parts."""
        mean = total([part for own in parts for part in own])
        for own in parts:
            apply(own[0], mean, self.zero_fill)

    def end(self, runs):
        """After the last step."""


def split_batches(x, t, parts):
    """A batch in parts, as equal as they can be, without empty ones."""
    if parts == 1 or not len(x):
        return [(x, t)]
    bounds = numpy.array_split(numpy.arange(len(x)), parts)
    return [(x[b], t[b]) for b in bounds if len(b)]


@functools.lru_cache(None)
def reference(row, kind, replicas, parts, formula, zero_fill=False):
    """The result of a row in one process.

    Args:
        replicas: how many there are.
        parts: into which each replica's batches are split, whose gradients are added.
        formula: a kind of :class:`Formula`.
        zero_fill: whether parameters without a gradient get zeros.
    """
    with row.settings():
        return _reference(row, kind, replicas, parts, formula(zero_fill))


def _reference(row, kind, replicas, parts, formula):
    runs = [replica_of(row, kind, rank) for rank in range(replicas)]
    for run in runs:
        with run.column.random():
            row.each("start", run)
    before = {name: p.array.copy() for name, p in distinct(runs[0].model)}
    for step in range(STEPS):
        reference_step(row, runs, parts, formula, step)
    formula.end(runs)
    after = dict(distinct(runs[0].model))
    both = before.keys() & after.keys()  # a row may delete parameters
    unmoved = {name[1:] for name in both if (before[name] == after[name].array).all()}
    observed = [run.observed for run in runs]
    return Result([run.save() for run in runs], observed, unmoved)


def replica_of(row, kind, rank):
    """A replica that has been set up; its weights are rank 0's."""
    run = Run(rank, True, row, kind, True, Replica(rank, "random" in row.traits))
    run.column.run = run
    run.trained += make(row, kind, 0, plain)
    if any(p.array is None for p in run.model.params()):
        with renga.using_config("train", False), renga.no_backprop_mode():
            run.model(row.data(type(run.model), 0, 4)[0])
        for link in run.model.links():
            if hasattr(link, "reset_state"):
                link.reset_state()
    return run


def reference_step(row, runs, parts, formula, step):
    """A step of all replicas."""
    for run in runs:
        run.step = step
        with run.column.random():
            row.each("before", run, step)
    for index in range(row.updates):
        for run in runs:
            run.column.gradients = []
            batch = own_batch(row, run, len(runs))
            with run.column.random():
                update(row, run, split_batches(*batch, parts), index)
        formula.step([run.column.gradients for run in runs])
    for run in runs:
        with run.column.random():
            row.each("after", run, step)


def plain(model, optimizer, example):
    return model, model, optimizer.setup(model)
