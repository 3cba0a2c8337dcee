"""A column of the table: a way to run on ranks."""

from __future__ import annotations

import contextlib

import numpy

from renga.communicators import local, simulated
from tests.combinations.reference import Formula, reference
from tests.combinations.row import STEPS, adapted
from tests.combinations.run import Result, Run, bounds, make, run_steps


class Column:
    """How models and optimizers are wrapped, and what the reference is.

    A subclass sets what is different. A column knows nothing of rows but their traits.
    """

    name = ""
    covers: tuple[str, ...] = ()  # public ways that it stands for
    ranks = 2
    nodes = 1
    shared_memory = True
    is_simulated = False
    in_processes = False  # whether cells are tests of processes, too
    kinds: tuple[str, ...] = ("vectors", "images", "sequences")
    own_samples = True  # or all ranks have the same batches
    parts = 1  # micro-batches, or batches of an update
    formula: type[Formula] = Formula
    zero_fill = False
    dtype = None  # of rows that do not choose one
    optimizer = None  # likewise, its class
    is_exact = True  # or ranks only have to agree
    agrees_on: frozenset[str] = frozenset()  # traits with which they only have to
    saves_more = False  # in the optimizer's file than one process does
    lacks: dict[str, str] = {}  # reasons by trait of rows

    @property
    def apart(self):
        """Reasons by pairs of traits of rows that do not go together."""
        if not self.own_samples:
            return {}
        alone = "rank 0 has the statistics of its own samples, which all ranks get"
        others = "the samples of which ranks have statistics depend on the ranks"
        return {
            ("batch statistics", "rank 0 loads"): alone,
            ("batch statistics", "other ranks"): others,
        }

    # Traits of rows whose ranks begin with the same weights: gradients that the loop
    # has set are dropped with the weights they belong to, and files of an optimizer
    # that has not begun hold each rank's own weights.
    alike = frozenset({"gradients by hand", "untrained"})
    begins_alike = False

    def wrap(self, comm, model, optimizer, example, row):
        """The loop's model, the model that its loss calls, and the optimizer."""
        raise NotImplementedError(type(self).__name__)

    def update(self, trained, loss, args, kwargs):
        """An update; without a loss by the gradients that the parameters have."""
        trained.optimizer.update(loss, *args, **kwargs)

    def batches(self, x, t):
        """What a rank calls ``update`` with in a step."""
        return [(x, t)]

    def evaluate(self, trained, x):
        """The model's result."""
        return trained.model(x)

    def finish(self, run):
        """After the last step."""

    def saving(self, run, is_last):
        """A context in which every rank saves or loads; the last files are compared."""
        return contextlib.nullcontext()

    def replica(self, rank, ranks):
        """The replica of the reference that this rank is equal to."""
        return rank if self.own_samples else 0

    def replicas(self, ranks):
        """The number of replicas of the reference."""
        return ranks if self.own_samples else 1

    def phases(self, row):
        """After which steps other ranks go on."""
        return row.phases

    def parts_of(self, row):
        """Into how many parts the reference splits a batch."""
        return self.parts

    def kind(self, row):
        """The kind of data in which this column runs a row, or None."""
        return next((kind for kind in self.kinds if kind in row.kinds), None)

    def is_exact_on(self, row):
        """Whether a row's result is that of its reference."""
        return self.is_exact and not row.traits & self.agrees_on

    def adapted(self, row):
        """The row as this column runs it."""
        return adapted(row, self.dtype, self.optimizer)

    def expected(self, row):
        """The result of the reference."""
        row = self.adapted(row)
        # The samples of all ranks, whatever their number is, are one process's.
        replicas = 1 if "other ranks" in row.traits else self.replicas(self.ranks)
        options = self.parts_of(row), self.formula, self.zero_fill
        return reference(row, self.kind(row), replicas, *options)

    def run(self, row, failures=None):
        """The result of a row on the ranks of this column.

        Args:
            failures: gets those of the ranks.
        """
        row = self.adapted(row)
        self.begins_alike = failures is not None or bool(row.traits & self.alike)
        failures = [] if failures is None else failures
        result = Result()
        for first, last, ranks in bounds(self.phases(row)):
            ranks = self.ranks if ranks is None else ranks
            before = result.files
            found = self.on_ranks(row, ranks, first, last, before, failures)
            result.files = [files for files, _ in found]
            for i, (_, observed) in enumerate(found):
                if i == len(result.observed):
                    result.observed.append([])
                result.observed[i] = result.observed[i] + observed
        return result

    def on_ranks(self, row, ranks, first, last, files, failures):
        """Files and observations of each rank after some of the steps."""

        def act(comm):
            note = failures.append
            with row.settings():
                return self.on_rank(comm, row, first, last, files, note)

        return self.launch(row, act, ranks)

    def launch(self, row, act, ranks):
        """What ``act(comm)`` returns on each rank."""
        if self.is_simulated or "random" in row.traits:
            machine = simulated.Machine(intra_size=ranks // self.nodes)
            return simulated.run(act, ranks, machine).results
        shared = self.shared_memory
        return local.run(act, ranks=ranks, shared_memory=shared, nodes=self.nodes)

    def on_rank(self, comm, row, first, last, files, note):
        """A rank's files and observations."""
        run = self.started(comm, row)
        if first or files:
            self.load(run, comm, row, files)
        run_steps(row, run, self.replicas(comm.size), first, last, note)
        if last == STEPS or row.joins:
            self.finish(run)
        return self.save(run, comm, last), run.observed

    def started(self, comm, row):
        """A run before its first step."""
        rank, kind = self.replica(comm.rank, comm.size), self.kind(row)
        run = Run(rank, comm.rank == 0, row, kind, self.is_exact_on(row), self)

        def wrap(model, optimizer, example):
            return self.wrap(comm, model, optimizer, example, row)

        run.trained += make(row, kind, 0 if self.begins_alike else comm.rank, wrap)
        row.each("start", run)
        return run

    def load(self, run, comm, row, files):
        """Goes on from the files of an earlier phase."""
        loads = row.loads == "all ranks" or comm.rank == 0
        run.load(files[min(comm.rank, len(files) - 1)] if loads else None)

    def save(self, run, comm, last):
        """The files after a phase, of which the last ones are compared."""
        return run.save(last == STEPS)

    def __repr__(self):
        return self.name


class SameBatches(Column):
    """All ranks have the same batches."""

    own_samples = False
    lacks = {"own samples": "all ranks have the same batches"}


class Parts(Column):
    """Each rank's batch comes in parts, of which each is a call of ``update``."""

    def batches(self, x, t):
        return list(zip(*(numpy.array_split(each, self.parts) for each in (x, t))))
