"""Asynchronous optimizers."""

from __future__ import annotations

import contextlib
import math

import numpy

from renga.distributed import asynchronous
from renga.optimizers import SGD, NesterovAG
from tests.combinations.column import Column
from tests.combinations.reference import Formula, apply, distinct, total

THREADS = "its ranks are threads here, which share NumPy's generator"


class Alone(Formula):
    """Each replica updates by its own gradients; then ``combine`` moves them.

    What a loop writes into the parameters between updates counts for ``begin``, too.
    """

    def __init__(self, zero_fill):
        super().__init__(zero_fill)
        self.states = {}  # by the first replica's model

    def step(self, parts):
        replicas = [own[0].trained for own in parts]
        key = id(replicas[0].model)
        if key not in self.states:
            self.states[key] = State(replicas)
        state = self.states[key]
        state.follow(replicas)
        for rank, own in enumerate(parts):
            samples = sum(part.weight for part in own)
            state.samples[rank] += samples
            if samples:
                apply(own[0], total(own), self.zero_fill)
            else:
                replicas[rank].optimizer.t += 1
        state.note_trained(replicas)
        self.combine(replicas, state)
        state.left = copies(replicas[0])

    def combine(self, replicas, state):
        """Moves the parameters of the replicas of a model."""


class State:
    """What is kept of a model beside its replicas."""

    def __init__(self, replicas):
        self.count = 0
        self.begin = copies(replicas[0])
        self.left = copies(replicas[0])
        self.velocities = [numpy.zeros_like(x) for x in self.begin]
        self.samples = numpy.zeros(len(replicas))
        self.trained = [False] * len(self.begin)

    def follow(self, replicas):
        """Takes what the loop has written since the last step."""
        for begin, left, x in zip(self.begin, self.left, arrays(replicas[0])):
            begin[...] = numpy.where(x == left, begin, x)

    def note_trained(self, replicas):
        """Notes of which arrays a parameter is not frozen."""
        params = params_of(replicas[0])
        trained = [param.array for param in params if param.update_rule.enabled]
        for i, param in enumerate(params):
            shares = [numpy.shares_memory(param.array, x) for x in trained]
            self.trained[i] |= any(shares)

    def restart(self):
        """After an average."""
        self.samples[:] = 0
        self.trained = [False] * len(self.begin)


def arrays(trained):
    """The arrays of the parameters in one order."""
    return [param.array for param in params_of(trained)]


def params_of(trained):
    """The parameters that have arrays, of which two may have one."""
    return [param for _, param in distinct(trained.model) if param.array is not None]


def copies(trained):
    return [x.copy() for x in arrays(trained)]


class Asynchronous(Column):
    """An optimizer that takes the place of a multi-node optimizer."""

    saves_more = True
    lacks = {"other ranks": "each rank has a replica"}
    # Each rank had a state of its own, and writes into a replica of its own.
    agrees_on = frozenset({"rank 0 loads", "rank 0 writes later"})

    def create(self, optimizer, comm):
        raise NotImplementedError

    def wrap(self, comm, model, optimizer, example, row):
        optimizer = self.create(optimizer.setup(model), comm)
        return model, model, optimizer

    def finish(self, run):
        for each in run.trained:
            each.optimizer.join()

    @contextlib.contextmanager
    def saving(self, run, is_last):
        with contextlib.ExitStack() as scope:
            if is_last and not run.is_exact:
                for each in run.trained:
                    scope.enter_context(each.optimizer.averaged())
            yield


class Averages(Alone):
    """Local SGD with an average in every update, weighted by samples."""

    every = 1

    def combine(self, replicas, state):
        state.count += 1
        if state.count % self.every == 0:
            self.average(replicas, state)
            state.restart()

    def average(self, replicas, state):
        for xs in zip(*map(arrays, replicas)):
            mean = numpy.average(xs, axis=0, weights=state.samples)
            for x in xs:
                x[...] = mean

    def end(self, runs):
        for replicas in zip(*(run.trained for run in runs)):
            state = self.states[id(replicas[0].model)]
            if state.count % self.every:
                self.average(replicas, state)


class LocalSGD(Asynchronous):
    name = "local SGD, every=1"
    covers = ("create_local_sgd_optimizer", "local SGD, every=1")
    every = 1
    formula = Averages
    in_processes = True

    def create(self, optimizer, comm):
        return asynchronous.create_local_sgd_optimizer(optimizer, comm, self.every)


class RareAverages(Averages):
    every = 2


class RareLocalSGD(LocalSGD):
    name = "local SGD, every=2"
    in_processes = False
    every = 2
    formula = RareAverages


class Outer(RareAverages):
    """DiLoCo: Nesterov's momentum, in the form of NesterovAG, on the mean moves."""

    rate, momentum = 0.7, 0.9

    def average(self, replicas, state):
        rate, momentum = self.rate, self.momentum
        values = zip(state.begin, state.velocities, state.trained)
        before = zip(*map(copies, replicas))
        for (begin, v, is_trained), own in zip(values, before):
            if is_trained:
                mean = numpy.average(own, axis=0, weights=state.samples)
                v[...] = momentum * v - rate * (begin - mean)
                begin += momentum**2 * v - (1 + momentum) * rate * (begin - mean)
        for begin, *xs in zip(state.begin, *map(arrays, replicas)):
            for x in xs:
                x[...] = begin


class DiLoCo(RareLocalSGD):
    name = "DiLoCo"
    formula = Outer

    def create(self, optimizer, comm):
        outer = NesterovAG(Outer.rate, Outer.momentum)
        create = asynchronous.create_local_sgd_optimizer
        return create(optimizer, comm, self.every, outer=outer)


class Center(Alone):
    """Elastic averaging with beta 0.9 in every second update."""

    def combine(self, replicas, state):
        state.count += 1
        if state.count % 2:
            return
        alpha = 0.9 / len(replicas)
        before = zip(*map(copies, replicas))
        for center, own, *xs in zip(state.begin, before, *map(arrays, replicas)):
            pulls = [alpha * (y - center) for y in own]
            for x, y, pull in zip(xs, own, pulls):
                x[...] = y - pull
            center += sum(pulls)


class ElasticAveraging(Asynchronous):
    name = "elastic averaging"
    covers = ("create_elastic_averaging_optimizer",)
    formula = Center

    def create(self, optimizer, comm):
        return asynchronous.create_elastic_averaging_optimizer(optimizer, comm, 2)


class Mixing(Alone):
    """D-PSGD of all ranks with equal weights: they step from their mean."""

    def step(self, parts):
        replicas = [own[0].trained for own in parts]
        before = [copies(each) for each in replicas]
        super().step(parts)
        after = zip(*map(copies, replicas))
        for own, ends, *begins in zip(zip(*map(arrays, replicas)), after, *before):
            mean = numpy.mean(begins, axis=0)
            for x, end, begin in zip(own, ends, begins):
                x[...] = end + mean - begin


class DPSGD(Asynchronous):
    name = "D-PSGD"
    covers = ("create_gossip_optimizer", "dpsgd")
    formula = Mixing
    method = "dpsgd"

    def create(self, optimizer, comm):
        graph = asynchronous.Complete()
        create = asynchronous.create_gossip_optimizer
        return create(optimizer, comm, self.method, graph)


class Agreeing(Asynchronous):
    """Results depend on time; in the end the ranks have the same average."""

    is_exact = False


class SGP(Agreeing, DPSGD):
    name = "stochastic gradient push"
    covers = ("sgp",)
    method = "sgp"


class ADPSGD(Agreeing, DPSGD):
    name = "AD-PSGD"
    covers = ("adpsgd",)
    method = "adpsgd"


class GoSGD(Agreeing, DPSGD):
    name = "GoSGD"
    covers = ("gosgd",)
    method = "gosgd"


class Server(Asynchronous):
    """Synchronous updates by parameter servers."""

    name = "parameter server, staleness=0"
    covers = ("create_server_optimizer", "parameter server, staleness=0")
    # The others' gradients of that update are of the weights before.
    agrees_on = frozenset({"rank 0 writes later"})
    lacks = {**Asynchronous.lacks, "random": THREADS}
    staleness: float = 0
    in_processes = True

    def create(self, optimizer, comm):
        create = asynchronous.create_server_optimizer
        return create(optimizer, comm, staleness=self.staleness)


class StaleServer(Agreeing, Server):
    name = "parameter server"
    staleness = math.inf


class MessagingServer(StaleServer):
    name = "parameter server, by messages"
    in_processes = False
    shared_memory = False


class Hogwild(Agreeing):
    name = "Hogwild"
    in_processes = True
    covers = ("create_hogwild_optimizer",)
    optimizer = SGD
    lacks = {
        **Asynchronous.lacks,
        "own optimizer": "its optimizer is SGD",
        "hooks": "its SGD has no hooks",
        "random": THREADS,
    }

    def create(self, optimizer, comm):
        return asynchronous.create_hogwild_optimizer(optimizer, comm)


COLUMNS = [
    *(LocalSGD(), RareLocalSGD(), DiLoCo(), ElasticAveraging(), DPSGD(), SGP()),
    *(ADPSGD(), GoSGD(), Server(), StaleServer(), MessagingServer(), Hogwild()),
]
