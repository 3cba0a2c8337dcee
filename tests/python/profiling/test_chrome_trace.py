"""Traces of all ranks in one file, against the Trace Event Format."""

import json
import time

import numpy as np
import pytest

import renga
import renga.functions as F
from renga.profiling import chrome_trace


def assert_valid(events):
    """As the Trace Event Format has it: what each kind of event must consist of."""
    for event in events:
        assert isinstance(event["name"], str)
        assert isinstance(event["pid"], int) and isinstance(event["tid"], int)
        if event["ph"] == "M":
            (value,) = event["args"].values()
            assert isinstance(value, int if event["name"].endswith("index") else str)
            continue
        assert isinstance(event["ts"], float) and isinstance(event["cat"], str)
        if event["ph"] == "X":
            assert isinstance(event["dur"], float) and event["dur"] >= 0
        else:
            assert event["ph"] in "sf" and isinstance(event["id"], str)
            assert event.get("bp") == ("e" if event["ph"] == "f" else None)


def test_a_data_parallel_program_has_a_lane_for_each_rank(ranks, tmp_path):
    def run(comm):
        model = renga.links.Linear(3, 2)
        optimizer = renga.distributed.create_multi_node_optimizer(
            renga.optimizers.SGD(0.1), comm
        ).setup(model)
        x = np.full((4, 3), comm.rank, "f")
        with renga.profiler() as profile:
            optimizer.update(lambda: F.sum(model(x)))
            comm.barrier()  # all have computed the first step
            optimizer.update(lambda: F.sum(model(x)))
        path = comm.bcast_obj(f"{tmp_path}/trace.json")
        profile.save_trace(path, comm)
        with open(path) as file:
            return json.load(file), len(profile.events)

    results = ranks(run)
    trace = results[0][0]
    assert sorted(trace) == ["displayTimeUnit", "traceEvents"]
    events = trace["traceEvents"]
    assert_valid(events)
    names = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    assert names == {rank: f"rank {rank}" for rank in range(len(results))}
    order = [e for e in events if e["name"] == "process_sort_index"]
    assert all(e["args"]["sort_index"] == e["pid"] for e in order)
    starts = {}
    for rank, (_, count) in enumerate(results):
        of_rank = [e for e in events if e["pid"] == rank]
        slices = [e for e in of_rank if e.get("cat") in ("forward", "backward")]
        assert len(slices) == count
        starts[rank] = [e["ts"] for e in slices if e["name"] == "linear"]
    # The clocks are one clock: every rank's second step is after all first ones.
    firsts, seconds = (
        [starts[rank][i] for rank in starts if len(starts[rank]) > i] for i in (0, -1)
    )
    assert len(firsts) == len(results) and max(firsts) < min(seconds)


@pytest.mark.parametrize("ahead", [0, 10**12, -(10**12)])
def test_offsets_of_clocks(several_ranks, ahead):
    """Those of ranks on other nodes, by the round trips; of this node, exactly 0."""

    def run(comm):
        begin = time.perf_counter_ns()
        offset = chrome_trace.clock_offset(
            comm, lambda: time.perf_counter_ns() + ahead * comm.rank
        )
        return offset, time.perf_counter_ns() - begin

    for rank, (offset, elapsed) in enumerate(several_ranks(run)):
        if ahead * rank == 0:
            assert offset == 0
        else:
            assert abs(offset + ahead * rank) <= elapsed


def test_a_file_that_cannot_be_written_is_an_error_on_all_ranks(ranks, tmp_path):
    def run(comm):
        with renga.profiler() as profile:
            F.exp(np.ones(2, "f"))
        with pytest.raises(FileNotFoundError):
            profile.save_trace(tmp_path / "nowhere" / "trace.json", comm)
        return comm.all_reduce(np.ones(1))[0]

    assert ranks(run)[0] >= 1
