"""Traces of pipelines: one lane for each rank, and an arrow for each message."""

import json
from collections import defaultdict

import pytest

import renga
from renga.optimizers import MomentumSGD
from renga.parallel.pipeline.schedule import Stream, flush_schedule
from renga.pipeline import Pipeline
from tests.parallel.pipeline import networks
from tests.python.profiling.test_chrome_trace import assert_valid

BATCHES, M = 2, 4
NAMES = {"F": "forward", "B": "backward", "W": "weights", "U": "update"}


def traced(comm, folder, **options):
    """The trace of two batches, which rank 0 reads, and the number of stages."""
    batches = networks.images(batches=BATCHES)
    parts = [x[:2] for x in batches[0]]
    options = {"reduce": "mean", **options}  # seen otherwise in further passes
    model = Pipeline(networks.Residual(), comm, *parts, micro_batches=M, **options)
    optimizer = MomentumSGD(0.05).setup(model)
    with renga.profiler() as profile:
        for batch in batches:
            model.train_batch(optimizer, model.model, batch)
        model.drain()
    path = comm.bcast_obj(f"{folder}/trace.json")
    profile.save_trace(path, comm)
    with open(path) as file:
        return json.load(file)["traceEvents"], len(model.partition.stages)


def lanes(events):
    """The names of the lanes in order, and the passes of each as a schedule's words."""
    names = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    passes = defaultdict(list)
    slices = [e for e in events if e.get("cat") == "pass"]
    for e in sorted(slices, key=lambda e: e["ts"]):
        kind, micro_batch = e["name"].split()
        assert int(micro_batch) == e["args"]["micro-batch"]
        passes[e["pid"]].append((kind, e["args"]["stage"], int(micro_batch)))
    return [names[pid] for pid in sorted(names)], [passes[pid] for pid in sorted(names)]


def in_words(actions):
    return [(NAMES[kind], stage, i) for kind, stage, i in actions]


@pytest.mark.parametrize("schedule", ["gpipe", "1f1b", "interleaved"])
def test_the_passes_of_a_lane_are_the_schedule_of_its_stages(
    some_ranks, tmp_path, schedule
):
    results = some_ranks(lambda comm: traced(comm, tmp_path, schedule=schedule))
    size, (events, stages) = len(results), results[0]
    assert_valid(events)
    names, passes = lanes(events)
    if stages == size:
        assert names == [f"stage {r} (rank {r})" for r in range(size)]
    else:
        assert names == [f"stages {r}, {r + size} (rank {r})" for r in range(size)]
    expected = flush_schedule(schedule, size, M, stages // size)
    assert passes == [in_words(actions) * BATCHES for actions in expected]


def test_the_passes_of_a_stream(some_ranks, tmp_path):
    options = {"schedule": "pipedream", "weights": "stash"}
    results = some_ranks(lambda comm: traced(comm, tmp_path, **options))
    _, passes = lanes(results[0][0])
    for rank, found in enumerate(passes):
        stream = Stream(rank, len(results), M)
        actions = [a for _ in range(BATCHES) for a in stream.next_batch()]
        assert found == in_words([*actions, *stream.drain()])


@pytest.mark.parametrize("schedule", ["1f1b", "interleaved", "pipedream"])
def test_arrows_lead_from_the_pass_that_sends_to_the_one_that_needs_it(
    some_ranks, tmp_path, schedule
):
    events, stages = some_ranks(lambda comm: traced(comm, tmp_path, schedule=schedule))[
        0
    ]
    slices = [e for e in events if e.get("cat") == "pass"]

    def around(event):
        (found,) = [
            e
            for e in slices
            if e["pid"] == event["pid"] and e["ts"] <= event["ts"] <= e["ts"] + e["dur"]
        ]
        return found["name"], found["args"]["stage"]

    begin = {e["id"]: e for e in events if e["ph"] == "s"}
    end = {e["id"]: e for e in events if e["ph"] == "f"}
    assert sorted(begin) == sorted(end) and begin
    assert len(begin) + len(end) == sum(e["ph"] in "sf" for e in events)
    routes = set()
    for id, sent in begin.items():
        received = end[id]
        assert sent["ts"] <= received["ts"]
        (name, source), (also, target) = around(sent), around(received)
        assert name == also
        kind = "forward" if sent["name"] == "activations" else "backward"
        assert name.split()[0] == kind
        assert source < target if kind == "forward" else source > target
        routes.add((kind, source, target))
    for stage in range(stages - 1):  # besides those that skip stages
        assert ("forward", stage, stage + 1) in routes
        assert ("backward", stage + 1, stage) in routes


def test_messages_of_which_one_end_was_seen_are_left_out(some_ranks, tmp_path):
    """A stage whose profile begins later has not seen what it received before."""
    batches = networks.images(batches=2)

    def run(comm):
        model = Pipeline(networks.Residual(), comm, *batches[0])
        optimizer = MomentumSGD(0.05).setup(model)
        profile = renga.profiler()
        for i, batch in enumerate(batches):
            if i > 0 or comm.rank == 0:
                with profile:
                    model.train_batch(optimizer, model.model, batch)
            else:
                model.train_batch(optimizer, model.model, batch)
        path = comm.bcast_obj(f"{tmp_path}/trace.json")
        profile.save_trace(path, comm)
        with open(path) as file:
            return json.load(file)["traceEvents"], len(profile.messages)

    results = some_ranks(run)
    events = results[0][0]
    counts = {
        phase: sum(e["ph"] == phase and e["pid"] == 0 for e in events) for phase in "sf"
    }
    assert counts["s"] == counts["f"] > 0
    assert counts["s"] + counts["f"] == results[0][1] / 2
