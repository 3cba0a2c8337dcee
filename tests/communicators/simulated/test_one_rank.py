"""Simulated ranks: shapes, counts, predicted times."""

import numpy as np
import pytest

from renga.communicators import create_communicator
from renga.communicators.simulated import Machine
from renga.utils.type_check import InvalidType

SLOW = {"latency": 1e-3, "bandwidth": 1e6}


def test_reductions_keep_shapes_and_count():
    comm = create_communicator("simulated", size=64, rank=5, **SLOW)
    x = np.full((100, 5), 2.0, "float32")
    np.testing.assert_array_equal(comm.all_reduce(x), 128)
    np.testing.assert_array_equal(comm.all_reduce(x, "mean", wait=False).wait(), 2)
    assert comm.reduce_scatter(np.ones((64, 3))).tolist() == [64.0] * 3
    assert comm.all_gather(np.arange(3)).shape == (64, 3)
    traffic = comm.traffic
    assert traffic.calls == {"all_reduce": 2, "reduce_scatter": 1, "all_gather": 1}
    # Each way of reducing sends at least this much: 2 (p - 1) / p of the vector.
    assert traffic.bytes == 2 * (2 * 63 * 2000 // 64) + 63 * 24 + 63 * 24
    assert traffic.background_seconds > 0


def test_times_are_those_of_the_model():
    alone = Machine(**SLOW)
    # Six doublings of a short vector; a long one by halves: 2 * 63/64 of it.
    assert alone.all_reduce(64, 4) == pytest.approx(6 * (1e-3 + 4e-6), rel=1e-3)
    assert alone.all_reduce(64, 6_400_000) == pytest.approx(12.6 + 12e-3, rel=1e-3)
    assert alone.message(1000, False) == pytest.approx(2e-3)
    # Eight ranks of a node share its way out: each sends an eighth.
    nodes = Machine(intra_size=8, node_latency=0, node_bandwidth=1e12, **SLOW)
    assert nodes.all_reduce(64, 6_400_000) == pytest.approx(
        6e-3 + 2 * 7 / 8 * 0.8, rel=1e-2
    )


def test_a_ring_of_messages():
    comm = create_communicator("simulated", size=8, rank=7, intra_size=4)
    assert (comm.intra_rank, comm.inter_rank, comm.inter_size) == (3, 1, 2)
    comm.send((np.arange(3), np.ones(2)), 0, tag=1)
    first, second = comm.recv(6, tag=1)
    assert first.tolist() == [0, 1, 2] and second.tolist() == [1, 1]
    out = np.empty((2, 2), "float32")
    work = comm.recv(6, tag=2, out=out, wait=False) if comm.size < 8 else None
    comm.send(np.full((2, 2), 3, "float32"), 6, tag=2, wait=False)
    assert work is None and comm.recv(0, tag=2, out=out).sum() == 12
    with pytest.raises(RuntimeError, match="what it has sent itself with tag 9"):
        comm.recv(0, tag=9)
    assert comm.traffic.calls["send"] == 2


def test_objects_and_groups():
    comm = create_communicator("simulated", size=6, rank=4, intra_size=2)
    assert comm.allreduce_obj(3) == 18
    assert comm.bcast_obj({"a": 1}) == {"a": 1}
    assert comm.gather_obj("x", root=4) == ["x"] * 6
    assert comm.gather_obj("x", root=0) is None
    assert comm.scatter_obj(list("abcdef")) == "e"
    assert [y.shape for y in comm.alltoall([np.ones(r) for r in range(6)])] == [
        (r,) for r in range(6)
    ]
    even = comm.split_by(lambda rank: rank % 2)
    assert (even.rank, even.size, even.intra_size) == (2, 3, 1)
    calls = comm.traffic.calls["all_reduce"]
    even.all_reduce(np.ones(2))
    assert comm.traffic.calls["all_reduce"] == calls + 1
    with pytest.raises(RuntimeError, match="split_by"):
        comm.split(0, 0)


@pytest.mark.parametrize(
    "wrong, message",
    [
        ({"rank": 2}, r"a rank in \[0, 2\), got 2"),
        ({"size": 6, "intra_size": 4}, "evenly"),
    ],
)
def test_invalid_arguments_are_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        create_communicator("simulated", **wrong)


@pytest.mark.parametrize("size, intra_size", [(4, 4), (4, 2), (3, 1), (1, 1)])
@pytest.mark.parametrize("double_buffering", [False, True])
def test_training_on_different_machines(size, intra_size, double_buffering):
    import renga.links as L
    from renga import optimizers
    from renga.distributed import create_multi_node_optimizer

    comm = create_communicator("simulated", size=size, intra_size=intra_size)
    x, t = np.ones((6, 3), "f4"), np.zeros(6, "i4")
    serial, model = (L.Classifier(L.Linear(3, 2, initialW=0.1)) for _ in range(2))
    alone = optimizers.MomentumSGD(0.1).setup(serial)
    together = create_multi_node_optimizer(
        optimizers.MomentumSGD(0.1), comm, double_buffering=double_buffering
    ).setup(model)
    for _ in range(4):
        together.update(model, x, t)
    if not double_buffering:
        for _ in range(4):
            alone.update(serial, x, t)
        for mine, param in zip(model.params(), serial.params()):
            np.testing.assert_allclose(mine.array, param.array, rtol=1e-6)
    assert not comm.shares_memory()
    assert comm.window_layout([x]) == 0 and comm.copy_to_window([x]) == []


def test_invalid_calls_raise_as_on_real_ranks():
    comm = create_communicator("simulated", size=4, intra_size=4)
    for call, kind in [
        (lambda: comm.all_reduce(np.ones(3), "average"), ValueError),
        (lambda: comm.all_reduce(np.ones(3, "i4"), "mean"), InvalidType),
        (lambda: comm.all_reduce(np.ones(3), out=np.ones(4)), InvalidType),
        (lambda: comm.all_gather(np.ones(3), out=np.ones((4, 3), "f4")), InvalidType),
        (lambda: comm.all_to_all(np.ones((3, 3))), InvalidType),
        (lambda: comm.reduce_scatter(np.ones((5, 3))), InvalidType),
        (lambda: comm.broadcast(np.ones(3), 4), ValueError),
        (lambda: comm.bcast(np.ones(3), root=-1), ValueError),
        (lambda: comm.send(np.ones(3), 4), ValueError),
        (lambda: comm.recv(-2), ValueError),
        (lambda: comm.gather(np.ones(3), root=4), ValueError),
    ]:
        with pytest.raises(kind):
            call()
