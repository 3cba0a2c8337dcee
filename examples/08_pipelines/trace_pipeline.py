"""Show what the ranks of a pipeline do, and when, in chrome://tracing or Perfetto.

mpiexec -n 2 python trace_pipeline.py --schedule 1f1b --out trace.json
"""

import argparse
import json

import numpy
from networks import VGG

import renga
import renga.links as L
from renga.pipeline import Pipeline


def trace(path, schedule="1f1b", micro_batches=4, batch=64, width=32):
    """Trains on a batch a few times and saves the trace of the last step.

    Returns the trace's events on rank 0, and nothing on the others.
    """
    comm = renga.distributed.create_communicator()
    random = numpy.random.RandomState(0)
    x = random.randn(batch, 1, 16, 16).astype("f")
    t = random.randint(0, 10, batch).astype("i")
    part = -(-batch // micro_batches)
    options = {"schedule": schedule, "micro_batches": micro_batches}
    model = Pipeline(L.Classifier(VGG(width)), comm, x[:part], t[:part], **options)
    optimizer = renga.optimizers.MomentumSGD(0.01).setup(model)
    for _ in range(3):
        model.train_batch(optimizer, model.model, (x, t))
    comm.barrier()
    with renga.profiler() as profile:
        model.train_batch(optimizer, model.model, (x, t))
    profile.save_trace(path, comm)
    if comm.rank == 0:
        with open(path) as file:
            return json.load(file)["traceEvents"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    schedules = ["gpipe", "1f1b", "interleaved"]
    parser.add_argument("--schedule", choices=schedules, default="1f1b")
    parser.add_argument("--out", default="trace.json", help="file to write")
    args = parser.parse_args()
    events = trace(args.out, args.schedule)
    if events is not None:
        print(f"{args.out} has {len(events)} events")


if __name__ == "__main__":
    main()
