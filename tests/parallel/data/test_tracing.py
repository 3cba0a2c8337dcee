"""Traces of data-parallel training: buckets, messages and waiting."""

import json

import renga
from renga.parallel.data import buckets
from tests.parallel.data.training_steps import T, X, make, own_samples
from tests.python.profiling.test_chrome_trace import assert_valid


def traced(comm, folder):
    """The events of this rank in the trace of all steps, and what it has sent."""
    model, optimizer = make(comm)
    comm.bcast_data(model)
    model.cleargrads()
    sent = []
    with renga.profiler() as profile:
        for x, t in zip(X, T):
            before = comm.traffic.bytes_by_call["all_reduce"]
            optimizer.update(model, own_samples(comm, x), own_samples(comm, t))
            sent.append(comm.traffic.bytes_by_call["all_reduce"] - before)
    path = comm.bcast_obj(f"{folder}/trace.json")
    profile.save_trace(path, comm)
    with open(path) as file:
        events = json.load(file)["traceEvents"]
    assert_valid(events)
    size = sum(param.array.nbytes for param in model.params())
    return [e for e in events if e["pid"] == comm.rank], sent, size


def slices(events, kind):
    found = [e for e in events if e.get("cat") == kind]
    return sorted(found, key=lambda e: e["ts"])


def test_buckets_are_shown_while_they_are_averaged(
    several_ranks, no_sharded_updates, monkeypatch, tmp_path
):
    monkeypatch.setattr(buckets, "BUCKET_BYTES", 40)
    results = several_ranks(traced, tmp_path)
    for events, sent, size in results:
        found = slices(events, "communication")
        if not found:  # virtual ranks communicate in the foreground
            continue
        steps = len(X)
        # Eight parameters, each in a bucket of its own.
        expected = [f"bucket {b}" for b in range(8)] * steps
        assert [e["name"] for e in found] == expected
        for first, second in zip(found, found[1:]):
            assert first["ts"] + first["dur"] <= second["ts"] + 1e-3
        for e in found:
            assert e["tid"] == 0 and e["args"]["gradients"] == 1
            assert e["args"]["queued us"] >= 0
        waits = [e for e in slices(events, "waiting") if "gradients" in e["name"]]
        assert len(waits) == steps
        for step, wait in enumerate(waits):
            own = found[8 * step : 8 * step + 8]
            assert sum(e["args"]["bytes"] for e in own) == size
            assert wait["tid"] != 0
            assert own[-1]["ts"] + own[-1]["dur"] <= wait["ts"] + wait["dur"]
            # The flags of the gradients are reduced besides, in one message of 512
            # bytes to each rank where ranks send messages, or in one of 520 bytes to
            # the other one of two equal nodes.
            flags = sent[step] - sum(e["args"]["sent bytes"] for e in own)
            assert flags in (0, 512 * (len(results) - 1), 520)
        lanes = [e for e in events if e["name"] == "thread_name" and e["tid"] == 0]
        assert [e["args"]["name"] for e in lanes] == ["communication"]


def test_sharded_updates_are_one_pass(several_ranks, tmp_path):
    shares = several_ranks(lambda comm: comm.shares_memory() and comm.inter_size == 1)
    for events, _, _ in several_ranks(traced, tmp_path):
        found = slices(events, "communication")
        updates = [e for e in found if e["name"] == "average and update"]
        # Arrays are moved to shared memory after the first update.
        assert len(updates) == (len(X) - 1 if all(shares) else 0)
