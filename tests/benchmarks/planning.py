"""Plans on described machines, and predicted against measured steps on real ranks.

    python -m tests.benchmarks.planning                      # described machines
    python -m tests.benchmarks.planning --proposals 10000    # delta against full
    OMP_NUM_THREADS=1 mpiexec -n 2 python -m tests.benchmarks.planning --measured

Described: the six networks of the FlexFlow paper on 4 P100 of one node and on 16 nodes
of 4 K80; the step of data parallelism, of the hand-made strategy and of the plan that
was found, bytes, and the time of a delta and a full simulation. Measured: seven
networks with five strategies each, and the plan that is found; steps take turns. The
rank correlation of predicted and measured times is Kendall's tau.
"""

import argparse
import itertools
import random
import time
from typing import Any

import numpy as np

import renga
import renga.functions as F
import renga.links as L
from renga import planning
from renga.parallel.plan.markov_chain import search_space
from renga.parallel.plan.plan import MULTI_NODE_OPTIMIZER, Plan
from renga.parallel.plan.space import OperationSpace, take
from renga.parallel.plan.strategies.sample_groups import sample_groups
from renga.parallel.plan.strategies.space import LinkSpace
from renga.parallel.plan.strategies.timing import time_plans
from renga.parallel.plan.strategies.traced_model import TracedModel
from renga.planning.networks import NETWORKS
from tests.benchmarks.steps.renga_steps import VGG

# Steps that differ by less change places from run to run.
_CLOSE = 0.05

MACHINES = {
    "4 P100": ("1 node × 4 ranks, in nodes: 20 GB/s, 5 µs", planning.P100),
    "64 K80": (
        "16 nodes × 4 ranks, 56 Gbit/s, 5 µs, in nodes: 10 GB/s, 5 µs",
        planning.K80,
    ),
}


def show_described(names: list[str], seconds: float) -> None:
    """A table of the strategies on described machines."""
    print("network, machine: data, hand-made, plan (ms); faster; bytes of data / plan")
    for machine, (text, device) in MACHINES.items():
        cluster, costs = planning.Cluster.describe(text), planning.Costs(device)
        for name in names:
            space = OperationSpace(NETWORKS[name](), cluster, costs)
            begun = time.process_time()
            found = search_space(space, seconds, seed=0)
            begun = time.process_time() - begun
            starts = space.starts(random.Random(0))
            data = take(space, starts["data"])
            sent = space.simulation.bytes_sent
            expert = take(space, starts["expert"])
            best = take(space, found[0].choices)
            ratio = sent / max(1, space.simulation.bytes_sent)
            print(
                f"{name}, {machine}: {data * 1e3:.1f} {expert * 1e3:.1f} "
                f"{best * 1e3:.1f}; {data / best:.2f}; {ratio:.2f}; "
                f"{sum(f.proposals for f in found)} proposals, {begun:.0f} s of a core",
                flush=True,
            )


def show_delta(names: list[str], proposals: int, ranks: str) -> None:
    """Compares delta and full simulation of the same proposals, and their times."""
    cluster = planning.Cluster.describe(ranks)
    for name in names:
        delta, times = simulated(name, cluster, proposals, is_delta=True)
        full, full_times = simulated(name, cluster, proposals, is_delta=False)
        different = sum(a != b for a, b in zip(delta, full))
        print(
            f"{name}: {proposals} proposals, {different} different; delta "
            f"{times / proposals * 1e3:.2f} ms, full "
            f"{full_times / proposals * 1e3:.2f} ms, {full_times / times:.1f} times",
            flush=True,
        )


def simulated(
    name: str, cluster: planning.Cluster, proposals: int, is_delta: bool
) -> tuple[list[float], float]:
    """The steps of random proposals, and the seconds of a core that this took.

    Each way has the processor's caches to itself, as in a search, and the costs of all
    configurations are known, as they are after some thousand proposals.
    """
    space = OperationSpace(NETWORKS[name](), cluster, planning.Costs(planning.P100))
    start, generator = space.current, random.Random(0)
    drawn = []
    for _ in range(proposals):
        variable = generator.randrange(len(space.groups))
        drawn.append((variable, space.draw(variable, generator)))
        space.change(*drawn[-1])
    steps, taken = [take(space, start)], 0.0
    for variable, choice in drawn:
        begun = time.process_time()
        space.change(variable, choice)
        if is_delta:
            steps.append(space.seconds())
        else:
            begun = time.process_time()
            steps.append(space.simulation.full_seconds())
        taken += time.process_time() - begun
    return steps, taken


class Residual(renga.Chain):
    """Blocks of two convolutions with a skip."""

    def __init__(self, width: int = 32, blocks: int = 4) -> None:
        super().__init__()
        with self.init_scope():
            self.first = L.Convolution2D(3, width, 3, pad=1)
            self.blocks = renga.ChainList(
                *[L.Convolution2D(width, width, 3, pad=1) for _ in range(2 * blocks)]
            )
            self.norms = renga.ChainList(
                *[L.BatchNormalization(width) for _ in range(2 * blocks)]
            )
            self.last = L.Linear(width, 10)

    def forward(self, x: Any) -> Any:
        h = F.relu(self.first(x))
        for i in range(0, len(self.blocks), 2):
            g = F.relu(self.norms[i](self.blocks[i](h)))
            h = F.relu(self.norms[i + 1](self.blocks[i + 1](g)) + h)
        return self.last(F.average(h, axis=(2, 3)))


class Branches(renga.Chain):
    """Convolutions of several sizes next to each other, as in Inception."""

    def __init__(self) -> None:
        super().__init__()
        with self.init_scope():
            self.first = L.Convolution2D(3, 32, 3, pad=1)
            self.a = L.Convolution2D(32, 32, 1)
            self.b = L.Convolution2D(32, 32, 3, pad=1)
            self.c = L.Convolution2D(32, 32, 5, pad=2)
            self.d = L.Convolution2D(96, 64, 3, pad=1)
            self.last = L.Linear(64 * 8 * 8, 10)

    def forward(self, x: Any) -> Any:
        h = F.max_pooling_2d(F.relu(self.first(x)), 2)
        h = F.concat([F.relu(link(h)) for link in (self.a, self.b, self.c)])
        return self.last(F.max_pooling_2d(F.relu(self.d(h)), 2))


class Wide(renga.Sequential):
    """Linear layers with many weights."""

    def __init__(self, inputs: int = 784, size: int = 2048) -> None:
        super().__init__(L.Linear(inputs, size), F.relu, L.Linear(size, size), F.relu)
        self.append(L.Linear(size, 10))


class AlexNet(renga.Chain):
    """Few convolutions and large linear layers, for images of 32 × 32 pixels."""

    def __init__(self) -> None:
        super().__init__()
        with self.init_scope():
            self.c1 = L.Convolution2D(3, 64, 5, pad=2)
            self.c2 = L.Convolution2D(64, 128, 5, pad=2)
            self.f1 = L.Linear(128 * 8 * 8, 1024)
            self.f2 = L.Linear(1024, 10)

    def forward(self, x: Any) -> Any:
        h = F.max_pooling_2d(F.relu(self.c1(x)), 2)
        h = F.max_pooling_2d(F.relu(self.c2(h)), 2)
        return self.f2(F.relu(self.f1(h)))


class Words(renga.Chain):
    """An LSTM layer that predicts each next word."""

    def __init__(self, words: int = 2000, size: int = 256) -> None:
        super().__init__()
        with self.init_scope():
            self.embed = L.EmbedID(words, size)
            self.layer = L.LSTM(size, size)
            self.output = L.Linear(size, words)

    def forward(self, x: Any) -> Any:
        self.layer.reset_state()
        ys = [self.layer(self.embed(x[:, t])) for t in range(x.shape[1])]
        return self.output(F.concat(ys, axis=0))


class Context(renga.Chain):
    """A language model of the words before each (Bengio et al., JMLR 2003)."""

    def __init__(self, words: int = 10000, size: int = 64, units: int = 512) -> None:
        super().__init__()
        with self.init_scope():
            self.embed = L.EmbedID(words, size)
            self.hidden = L.Linear(5 * size, units)
            self.output = L.Linear(units, words)

    def forward(self, x: Any) -> Any:
        return self.output(F.tanh(self.hidden(self.embed(x))))


def images(batch: int) -> np.ndarray:
    """Of 32 × 32 pixels."""
    return np.random.RandomState(0).randn(batch, 3, 32, 32).astype(np.float32)


def vectors(batch: int) -> np.ndarray:
    """Of 784 numbers."""
    return np.random.RandomState(0).randn(batch, 784).astype(np.float32)


def words(batch: int) -> np.ndarray:
    """Sentences of ten words."""
    return np.random.RandomState(0).randint(0, 2000, (batch, 10)).astype(np.int32)


def contexts(batch: int) -> np.ndarray:
    """Of five words."""
    return np.random.RandomState(0).randint(0, 10000, (batch, 5)).astype(np.int32)


MODELS: dict[str, Any] = {
    "VGG-16": (VGG, images, 32),
    "AlexNet": (AlexNet, images, 64),
    "Residual": (Residual, images, 32),
    "Branches": (Branches, images, 32),
    "Wide": (Wide, vectors, 128),
    "Context": (Context, contexts, 64),
    "Words": (Words, words, 64),
}


def kendall(predicted: list[float], measured: list[float], margin: float = 0) -> float:
    """The rank correlation: concordant less discordant pairs, of all.

    Args:
        margin: the share by which measured times of a pair differ at least; others are
            left out.
    """
    signs = [
        np.sign((a - c) * (b - d))
        for (a, b), (c, d) in itertools.combinations(zip(predicted, measured), 2)
        if abs(b / d - 1) >= margin
    ]
    return float(np.mean(signs)) if signs else 1.0


def show_measured(comm: Any, names: list[str], rounds: int) -> None:
    """Predicted and measured steps of each network and strategy."""
    cluster = planning.Cluster.of(comm)
    if comm.rank == 0:
        print(cluster)
    taus = []
    for name in names:
        make, example, batch = MODELS[name]
        model, x = make(), example(batch)
        model(x)  # initializes
        costs = planning.measure(model, x, comm)
        plans = strategies(model, x, cluster, costs)
        found = planning.search(model, x, cluster, costs, proposals=500)
        measured = time_plans(model, comm, {**plans, "found": found}, (x,), rounds)
        times = [measured[start] for start in plans]
        predicted = [plan.seconds for plan in plans.values()]
        taus.append([kendall(predicted, times, margin) for margin in (0, _CLOSE)])
        if comm.rank == 0:
            show_steps(name, {**plans, "found": found}, measured)
            taken = seconds_of_simulation(model, x, cluster, costs)
            ratio = min(measured.values()) / taken
            print(f"{name:9} a step is simulated {ratio:.0f} times as fast as it runs")
            text = ", ".join(f"{tau:.2f}" for tau in taus[-1])
            print(f"{name:9} Kendall tau {text}", flush=True)
    if comm.rank == 0:
        text = f"without pairs that differ by less than {_CLOSE:.0%}"
        print(f"mean Kendall tau {np.mean(taus, 0).round(2)}, the second {text}")


def show_steps(name: str, plans: dict[str, Plan], measured: dict[str, float]) -> None:
    """Each strategy of a network, and the plan beside the others."""
    for start, plan in plans.items():
        a, b = plan.seconds, measured[start]
        text = f"{a * 1e3:8.1f} ms predicted, {b * 1e3:8.1f} ms measured"
        print(f"{name:9} {start:11} {text}, error {a / b - 1:+.0%}")
    own, data = measured["found"], measured[MULTI_NODE_OPTIMIZER]
    best = min(time for start, time in measured.items() if start in plans)
    choices = f"{plans['found'].groups} groups, grid {plans['found'].grid}"
    print(f"{name:9} data parallelism without a plan: {data * 1e3:.1f} ms")
    print(
        f"{name:9} plan ({choices}): {own / best - 1:+.1%} of the fastest, "
        f"{data / own:.2f} times as fast as data parallelism"
    )


def seconds_of_simulation(
    model: Any, x: Any, cluster: planning.Cluster, costs: planning.Costs
) -> float:
    """The seconds of a core for a random change of a strategy, as in a search."""
    space = LinkSpace(TracedModel(model, (x,)), cluster, costs)
    generator, changes = random.Random(0), 1000
    begun = time.process_time()
    for _ in range(changes):
        variable = generator.randrange(len(space.current))
        space.change(variable, space.draw(variable, generator))
        space.seconds()
    return (time.process_time() - begun) / changes


def strategies(
    model: Any, x: Any, cluster: planning.Cluster, costs: planning.Costs
) -> dict[str, Plan]:
    """Five for each network."""
    traced = TracedModel(model, (x,))
    space = LinkSpace(traced, cluster, costs)
    starts = space.starts(random.Random(0))
    plans = {}
    for start in ("serial", "data", "channel", "random"):
        seconds = take(space, starts[start])
        links = space.link_choices()
        plans[start] = Plan(start, cluster, seconds, 0.0, [], links)
    groups = sample_groups(traced, cluster, costs)[-1]
    space = LinkSpace.of_groups(groups)
    links = space.link_choices()
    options = dict(groups=groups.count, stacked=groups.stacked)
    plans["samples"] = Plan("", cluster, space.seconds(), 0.0, [], links, **options)
    return plans


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--network", action="append", choices=list(NETWORKS))
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--proposals", type=int)
    parser.add_argument("--machine", default=MACHINES["64 K80"][0])
    parser.add_argument("--measured", action="store_true")
    parser.add_argument("--model", action="append", choices=list(MODELS))
    parser.add_argument("--rounds", type=int, default=8)
    options = parser.parse_args()
    names = options.network or list(NETWORKS)
    if options.measured:
        comm = renga.distributed.create_communicator()
        show_measured(comm, options.model or list(MODELS), options.rounds)
    elif options.proposals:
        show_delta(names, options.proposals, options.machine)
    else:
        show_described(names, options.seconds)


if __name__ == "__main__":
    main()
