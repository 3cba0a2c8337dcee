"""Find out how to train a network on several ranks, before and without training it.

python plan.py --network ResNet-101          # on 4, 16 and 64 ranks that are described
mpiexec -n 2 python plan.py                  # a small network on these ranks

Described machines: the step that the simulator predicts for data parallelism, for
Krizhevsky's strategy (convolutions by samples, linear and recurrent layers by channels)
and for the plan that a search finds. Real ranks: operations are measured, the plan that
the search finds is timed beside data parallelism, and the faster one is trained.
"""

import argparse
from pathlib import Path

import numpy

import renga
import renga.functions as F
import renga.links as L
from renga import planning
from renga.distributed import create_communicator, parallelize
from renga.planning.networks import NETWORKS

MACHINES = (
    "1 node × 4 ranks, in nodes: 20 GB/s, 5 µs",
    "4 nodes × 4 ranks, 56 Gbit/s, 5 µs, in nodes: 20 GB/s, 5 µs",
    "16 nodes × 4 ranks, 56 Gbit/s, 5 µs, in nodes: 20 GB/s, 5 µs",
)


class Network(renga.Chain):
    """Two convolutions, whose images are large, and linear layers with many weights."""

    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.conv1 = L.Convolution2D(3, 32, 5, pad=2)
            self.conv2 = L.Convolution2D(32, 64, 5, pad=2)
            self.fc1 = L.Linear(64 * 8 * 8, 1024)
            self.fc2 = L.Linear(1024, 10)

    def forward(self, x):
        h = F.max_pooling_2d(F.relu(self.conv1(x)), 2)
        h = F.max_pooling_2d(F.relu(self.conv2(h)), 2)
        return self.fc2(F.relu(self.fc1(h)))


def plan_described(name, seconds, out):
    """Prints how strategies compare, and the layers of the last plan."""
    for text in MACHINES:
        cluster = planning.Cluster.describe(text)
        costs = planning.Costs(planning.P100)
        plan = planning.search(NETWORKS[name](), None, cluster, costs, seconds, seed=0)
        print(
            f"{name} on {cluster.ranks} ranks: data parallelism "
            f"{plan.data_seconds * 1e3:.1f} ms, plan {plan.seconds * 1e3:.1f} ms"
        )
    print(plan.table())
    plan.save(out / "plan.json")


def plan_real(comm, seconds, out):
    """Plans the network for these ranks, and trains it for some steps."""
    numpy.random.seed(0)
    x = numpy.random.randn(32, 3, 32, 32).astype(numpy.float32)
    t = numpy.random.randint(0, 10, 32).astype(numpy.int32)
    model = Network()
    if comm.rank == 0:
        print(planning.work_depth(model, x, ranks=comm.size))
    cluster = planning.Cluster.of(comm)
    costs = planning.measure(model, x, comm, cache=out / "costs.json")
    plan = planning.search(model, x, cluster, costs, seconds, seed=0)
    if comm.rank == 0:
        print(plan.table())
        plan.save(out / "plan.json")
    model = parallelize(model, comm, plan, x)
    optimizer = renga.optimizers.MomentumSGD(0.001).setup(model)
    for step in range(3):
        loss = F.softmax_cross_entropy(model(x), t)
        model.cleargrads()
        loss.backward()
        optimizer.update()
        if comm.rank == 0:
            print(f"step {step}: loss {float(loss.array):.4f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--network", choices=list(NETWORKS))
    parser.add_argument("--seconds", type=float, default=10, help="of a search")
    parser.add_argument("--out", type=Path, default=Path("result"))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    if options.network:
        plan_described(options.network, options.seconds, options.out)
    else:
        plan_real(create_communicator(), options.seconds, options.out)


if __name__ == "__main__":
    main()
