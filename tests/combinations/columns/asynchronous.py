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
    """Each replica updates by its own gradients; then ``combine`` moves them."""

    def __init__(self, zero_fill):
        super().__init__(zero_fill)
        self.state = {}  # by the first replica's model

    def step(self, parts):
        replicas = [own[0].trained for own in parts]
        key = id(replicas[0].model)
        if key not in self.state:
            self.state[key] = self.begin(replicas)
        for own in parts:
            apply(own[0], total(own), self.zero_fill)
        self.combine(replicas, self.state[key])

    def begin(self, replicas):
        """What is kept of a model beside the replicas, before the first update."""
        return {"count": 0, "begin": [x.copy() for x in arrays(replicas[0])]}

    def combine(self, replicas, state):
        """Moves the parameters of the replicas of a model."""


def arrays(trained):
    """The arrays of the parameters in one order."""
    return [p.array for _, p in distinct(trained.model) if p.array is not None]


class Asynchronous(Column):
    """An optimizer that takes the place of a multi-node optimizer."""

    saves_more = True

    def create(self, optimizer, comm):
        raise NotImplementedError

    def wrap(self, comm, model, optimizer, example):
        optimizer = self.create(optimizer.setup(model), comm)
        return model, model, optimizer

    def finish(self, run):
        for each in run.trained:
            each.optimizer.join()


class Averages(Alone):
    """Local SGD with an average in every update."""

    every = 1

    def combine(self, replicas, state):
        state["count"] += 1
        if state["count"] % self.every == 0:
            self.average(replicas, state)

    def average(self, replicas, state):
        for xs in zip(*map(arrays, replicas)):
            mean = numpy.mean(xs, axis=0)
            for x in xs:
                x[...] = mean

    def end(self, runs):
        for replicas in zip(*(run.trained for run in runs)):
            state = self.state[id(replicas[0].model)]
            if state["count"] % self.every:
                self.average(replicas, state)


class LocalSGD(Asynchronous):
    name = "local SGD, every=1"
    covers = ("create_local_sgd_optimizer",)
    every = 1
    formula = Averages

    def create(self, optimizer, comm):
        return asynchronous.create_local_sgd_optimizer(optimizer, comm, self.every)


class RareAverages(Averages):
    every = 2


class RareLocalSGD(LocalSGD):
    name = "local SGD, every=2"
    every = 2
    formula = RareAverages


class Outer(RareAverages):
    """DiLoCo: Nesterov's momentum, in the form of NesterovAG, on the mean moves."""

    rate, momentum = 0.7, 0.9

    def average(self, replicas, state):
        velocities = state.setdefault("v", [0 * x for x in state["begin"]])
        for begin, v, *xs in zip(state["begin"], velocities, *map(arrays, replicas)):
            gradient = begin - numpy.mean(xs, axis=0)
            v[...] = self.momentum * v - self.rate * gradient
            begin += self.momentum**2 * v - (1 + self.momentum) * self.rate * gradient
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
        state["count"] += 1
        if state["count"] % 2:
            return
        alpha = 0.9 / len(replicas)
        for center, *xs in zip(state["begin"], *map(arrays, replicas)):
            pulls = [alpha * (x - center) for x in xs]
            for x, pull in zip(xs, pulls):
                x -= pull
            center += sum(pulls)


class ElasticAveraging(Asynchronous):
    name = "elastic averaging"
    covers = ("create_elastic_averaging_optimizer",)
    formula = Center

    def create(self, optimizer, comm):
        return asynchronous.create_elastic_averaging_optimizer(optimizer, comm, 2)


class Mixing(Formula):
    """D-PSGD of all ranks with equal weights: they step from their mean."""

    def step(self, parts):
        replicas = [own[0].trained for own in parts]
        for xs in zip(*map(arrays, replicas)):
            mean = numpy.mean(xs, axis=0)
            for x in xs:
                x[...] = mean
        for own in parts:
            apply(own[0], total(own), self.zero_fill)


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

    @contextlib.contextmanager
    def saving(self, run):
        with contextlib.ExitStack() as scope:
            for each in run.trained:
                scope.enter_context(each.optimizer.averaged())
            yield


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
    covers = ("create_server_optimizer",)
    lacks = {"random": THREADS}
    staleness: float = 0

    def create(self, optimizer, comm):
        create = asynchronous.create_server_optimizer
        return create(optimizer, comm, staleness=self.staleness)


class StaleServer(Agreeing, Server):
    name = "parameter server"
    staleness = math.inf


class MessagingServer(StaleServer):
    name = "parameter server, by messages"
    shared_memory = False


class Hogwild(Agreeing):
    name = "Hogwild"
    covers = ("create_hogwild_optimizer",)
    optimizer = SGD
    lacks = {
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
