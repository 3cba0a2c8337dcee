"""Find out how to train a network on several ranks, before and without training it.

python plan.py --network ResNet-101               # a network of the FlexFlow paper
python plan.py --model ResNet-50 --described      # a model: on 4, 16 and 64 described
mpiexec -n 2 python plan.py --model ResNet-50     # a model: on these ranks

Described machines: the steps that the simulator predicts for data parallelism, for
hand-made strategies and for the plan that a search finds. Real ranks: operations are
measured, the plans that the search finds are timed beside data parallelism, and the
model is trained for three steps by the fastest.
"""

import argparse
from pathlib import Path

import numpy
from models import MODELS

import renga
import renga.functions as F
from renga import planning
from renga.distributed import create_communicator, parallelize
from renga.planning.networks import NETWORKS

MACHINES = (
    "1 node × 4 ranks, in nodes: 20 GB/s, 5 µs",
    "4 nodes × 4 ranks, 56 Gbit/s, 5 µs, in nodes: 20 GB/s, 5 µs",
    "16 nodes × 4 ranks, 56 Gbit/s, 5 µs, in nodes: 20 GB/s, 5 µs",
)


def plan_described(name, network, x, seconds, out):
    """Prints how strategies compare, and the layers of the last plan."""
    for text in MACHINES:
        cluster = planning.Cluster.describe(text)
        costs = planning.Costs(planning.P100)
        plan = planning.search(network, x, cluster, costs, seconds, seed=0)
        others = ", ".join(
            f"{other} {time * 1e3:.1f}" for other, time in plan.predicted.items()
        )
        print(
            f"{name} on {cluster.ranks} ranks: {others} ms; data parallelism "
            f"{plan.data_seconds * 1e3:.1f} ms, plan {plan.seconds * 1e3:.1f} ms",
            flush=True,
        )
    print(plan.table())
    plan.save(out / "plan.json")


def plan_real(comm, make, x, seconds, out):
    """Plans a model for these ranks, and trains it for some steps."""
    model = make()
    with renga.using_config("train", False), renga.no_backprop_mode():
        model(*x)  # makes the parameters
    if comm.rank == 0:
        print(planning.work_depth(model, x, ranks=comm.size))
    cluster = planning.Cluster.of(comm)
    costs = planning.measure(model, x, comm, cache=out / "costs.json")
    plan = planning.search(model, x, cluster, costs, seconds, seed=0)
    if comm.rank == 0:
        print(plan.table())
        plan.save(out / "plan.json")
    model = parallelize(model, comm, plan, *x)
    optimizer = renga.optimizers.MomentumSGD(0.001).setup(model)
    for step in range(3):
        y = model(*x)
        t = numpy.arange(len(y), dtype=numpy.int32) % y.shape[1]
        loss = F.softmax_cross_entropy(y, t)
        model.cleargrads()
        loss.backward()
        optimizer.update()
        if comm.rank == 0:
            print(f"step {step}: loss {float(loss.array):.4f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--network", choices=list(NETWORKS))
    parser.add_argument("--model", choices=list(MODELS), default="small")
    parser.add_argument("--described", action="store_true")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--seconds", type=float, default=10, help="of a search")
    parser.add_argument("--out", type=Path, default=Path("result"))
    options = parser.parse_args()
    seconds, out = options.seconds, options.out
    out.mkdir(parents=True, exist_ok=True)
    if options.network:
        network = NETWORKS[options.network]()
        plan_described(options.network, network, None, seconds, out)
        return
    numpy.random.seed(0)
    make, example = MODELS[options.model]
    x = example(options.batch)
    if options.described:
        plan_described(options.model, make(), x, seconds, out)
    else:
        plan_real(create_communicator(), make, x, seconds, out)


if __name__ == "__main__":
    main()
