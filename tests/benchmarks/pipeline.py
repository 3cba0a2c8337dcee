"""Times training steps on one rank and, cut into stages, on all, in turn.

Run as ``OMP_NUM_THREADS=1 mpiexec -n 2 python -m tests.benchmarks.pipeline``. In each
round rank 0 computes a few steps of VGG-16 alone while the others sleep, then all ranks
compute as many with each kind of pipeline, without a barrier between them: the ranks of
a pipeline without flush are at different batches. Rounds in which other programs took
time are dropped, as in ``model_parallel``. Then the step time that the schedule
predicts: from the stages as the partition has measured them, and from what their passes
take in the steps themselves, without the waits for messages.
"""

import argparse
import statistics
import time
from collections import defaultdict
from typing import Any, Callable

import numpy as np

import renga
import renga.links as L
from renga.parallel.pipeline.schedule import Action, Stream, flush_schedule
from renga.pipeline import Pipeline
from renga.pipeline.timeline import timeline
from tests.benchmarks.model_parallel import QUIET, timed
from tests.benchmarks.steps.renga_steps import VGG

KINDS: dict[str, dict[str, Any]] = {
    "gpipe m=4": {"schedule": "gpipe", "micro_batches": 4},
    "1f1b m=8": {"schedule": "1f1b", "micro_batches": 8},
    "interleaved m=8": {"schedule": "interleaved", "micro_batches": 8},
    "pipedream": {"schedule": "pipedream", "weights": "stash"},
    "spectrain": {"schedule": "pipedream", "weights": "spectrain"},
    "pipeoptim": {"schedule": "pipedream", "weights": "pipeoptim"},
}


def batch_of(size: int) -> tuple[np.ndarray, np.ndarray]:
    """Random images and labels."""
    random = np.random.RandomState(0)
    x = random.randn(size, 3, 32, 32).astype(np.float32)
    return x, random.randint(0, 10, size).astype(np.int32)


def optimizer_of(model: renga.Link) -> Any:
    """The recipe of the other benchmarks."""
    optimizer = renga.optimizers.MomentumSGD(0.05).setup(model)
    optimizer.add_hook(renga.optimizer_hooks.WeightDecay(5e-4))
    return optimizer


def serial_step(batch: tuple[np.ndarray, np.ndarray]) -> Callable[[], None]:
    """A step in a single process."""
    model = L.Classifier(VGG())
    optimizer = optimizer_of(model)
    return lambda: optimizer.update(model, *batch)


def pipeline_step(
    comm: Any, batch: tuple[np.ndarray, np.ndarray], options: dict[str, Any]
) -> tuple[Callable[[], None], Pipeline]:
    """A step of a pipeline, which fills in the first calls."""
    size = -(-len(batch[0]) // options.get("micro_batches", 1))
    model = Pipeline(L.Classifier(VGG()), comm, *(x[:size] for x in batch), **options)
    optimizer = optimizer_of(model)
    return lambda: model.train_batch(optimizer, model.model, batch), model


def seconds_per_step(comm: Any, step: Any, steps: int) -> tuple[float, float]:
    """The mean over consecutive steps, and the fraction of a core that others used."""

    def run() -> None:
        for _ in range(steps):
            step()

    seconds, others = timed(comm, step and run)
    return seconds / steps, others


class PassClock:
    """Times the passes of a pipeline's stages while it runs, without their waits."""

    def __init__(self, model: Pipeline) -> None:
        self._waited = 0
        self.seconds: dict[tuple[str, int], list[float]] = defaultdict(list)
        messages, tracing = model._runner._messages, model._runner._tracing
        receive, note_pass = messages.receive, tracing.note_pass

        def timed_receive(*args: Any) -> Any:
            start = time.perf_counter_ns()
            x = receive(*args)
            self._waited += time.perf_counter_ns() - start
            return x

        def timed_pass(action: Action, start: int) -> None:
            seconds = (time.perf_counter_ns() - start - self._waited) / 1e9
            self.seconds[action.kind, action.stage].append(seconds)
            self._waited = 0
            note_pass(action, start)

        messages.receive = timed_receive  # type: ignore[method-assign]
        tracing.note_pass = timed_pass  # type: ignore[method-assign]

    def means(self, comm: Any) -> dict[tuple[str, int], float]:
        """Of all ranks' stages."""
        own = {key: statistics.mean(times) for key, times in self.seconds.items()}
        return {key: s for each in comm.allgather_obj(own) for key, s in each.items()}


def stage_times(model: Pipeline) -> dict[tuple[str, int], float]:
    """Seconds of each kind of action on each stage, as the partition knows them."""
    times = {}
    for i, stage in enumerate(model.partition.stages):
        times["F", i], times["B", i] = stage.forward, stage.backward
        times["W", i], times["U", i] = stage.weights, stage.update * model.micro_batches
    return times


def predicted(
    model: Pipeline, times: dict[tuple[str, int], float], batches: int = 20
) -> float:
    """Seconds of a step by the schedule, with messages that take no time."""
    stages, m, ranks = model.partition.stages, model.micro_batches, model.comm.size

    def seconds_of(action: Action) -> float:
        return times.get((action.kind, action.stage), 0.0)

    def seconds(schedules: list[list[Action]]) -> float:
        return max(p.end for p in timeline(schedules, len(stages), seconds_of))

    if model.schedule != "pipedream":
        chunks = len(stages) // ranks
        return seconds(flush_schedule(model.schedule, ranks, m, chunks))

    def stream(batches: int) -> float:
        streams = [Stream(rank, ranks, m) for rank in range(ranks)]
        return seconds(
            [[a for _ in range(batches) for a in s.next_batch()] for s in streams]
        )

    return (stream(2 * batches) - stream(batches)) / batches


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kinds", nargs="+", default=list(KINDS), choices=KINDS)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--steps", type=int, default=5, help="of a round")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--partitions", action="store_true", help="prints the stages")
    options = parser.parse_args()
    comm = renga.distributed.create_communicator("mpi")
    np.random.seed(0)
    batch = batch_of(options.batch)
    first = comm.rank == 0
    if first:
        print(f"{'':16} 1 rank ms  {comm.size} ranks ms  faster  (spread)", end="")
        print("  predicted, from passes, ms  rounds  others")
    for kind in options.kinds:
        step, model = pipeline_step(comm, batch, KINDS[kind])
        serial = serial_step(batch) if first else None
        clock = PassClock(model)
        rounds = []
        for k in range(options.rounds + 2):
            # The ranks' generators advance in their common steps only.
            state = np.random.get_state()
            one = seconds_per_step(comm, serial, options.steps)
            np.random.set_state(state)
            together = seconds_per_step(comm, step, options.steps)
            if k < 2:
                clock.seconds.clear()
            else:
                rounds.append((one[0], together[0], max(one[1], together[1])))
        model.drain()
        times = [stage_times(model), clock.means(comm)]
        if first:
            report(kind, rounds, [predicted(model, each) for each in times])
            if options.partitions:
                print(model.partition)
                for key, seconds in sorted(times[1].items()):
                    print(f"{key}: {seconds * 1e3:.2f} ms", end="  ")
                print(flush=True)


def report(
    kind: str, rounds: list[tuple[float, float, float]], predictions: list[float]
) -> None:
    """Prints one row of the table."""
    quiet = [r for r in rounds if r[2] < QUIET]
    kept = quiet if len(quiet) >= 3 else sorted(rounds, key=lambda r: r[2])[:3]
    one, together = (statistics.median(column) * 1e3 for column in list(zip(*kept))[:2])
    ratios = sorted(r[0] / r[1] for r in kept)
    print(
        f"{kind:16}{one:10.1f}{together:12.1f}{statistics.median(ratios):8.2f}"
        f"  ({ratios[0]:.2f}-{ratios[-1]:.2f})"
        f"{predictions[0] * 1e3:11.1f}{predictions[1] * 1e3:14.1f}"
        f"{len(kept):9}/{len(rounds)}{max(r[2] for r in kept):8.2f}",
        flush=True,
    )


if __name__ == "__main__":
    main()
