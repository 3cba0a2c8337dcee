"""Messages, model-parallel links and sharded optimizers on two devices of the stand-in.

Ranks are threads with a device each; they compute what one process computes on the CPU.
"""

from __future__ import annotations

import sys

import numpy
import pytest

import renga
import renga.distributed.functions as DF
import renga.functions as F
import renga.links as L
from renga.backends import cuda
from renga.communicators import local
from renga.communicators.nccl.nccl_communicator import NcclCollectives
from renga.communicators.nccl.staged import StagedCommunicator
from renga.distributed import create_multi_node_optimizer
from renga.distributed.links import MultiNodeBatchNormalization
from renga.links.parallel import spatial as S
from renga.parallel.parallelize import parallelize

native = pytest.importorskip("renga._nccl_standin", reason="RENGA_CUDA_STANDIN is off")
pytestmark = pytest.mark.skipif(
    getattr(sys.modules.get("renga._cuda"), "__name__", "") != "renga._cuda_standin",
    reason="needs the environment variable RENGA_CUDA_STANDIN",
)
IMAGE = (4, 3, 8, 6)


@pytest.fixture(params=[NcclCollectives, StagedCommunicator])
def on_two(request, monkeypatch, without_garbage):
    """What body(comm, device) returns on each of two ranks."""
    monkeypatch.setitem(sys.modules, "renga._communicators_nccl", native)

    def run(body):
        cuda.load_plugin()

        def rank(comm):
            comm = request.param(comm.native)
            device = renga.get_device(f"@cupy:{comm.rank}")
            device.use()
            found = body(comm, device)
            device.device.synchronize()
            return found

        return local.run(rank, ranks=2)

    return run


def numbers(seed, *shape):
    return numpy.random.RandomState(seed).standard_normal(shape)


def host(x):
    """An array of the device that computes now, on the host."""
    assert isinstance(x, cuda.ndarray)
    return cuda.to_cpu(x)


def test_messages_and_chainermn_collectives(on_two):
    x = numbers(0, 3, 4)

    def body(comm, device):
        mine = device.send(x + comm.rank)
        other = 1 - comm.rank
        pending = comm.recv(other, 7, out=device.send(x * 0), wait=False)
        comm.send(mine, other, 7, wait=False)
        found = [pending.wait()]
        comm.send((mine, mine[1:]), other, wait=False)
        found += comm.recv(other)
        comm.send(mine[:, ::2], other, wait=False)
        found += [comm.recv(other, out=device.send(x[:, ::2] * 0))]
        found += [comm.bcast(mine), comm.bcast(mine, 1), *comm.allgather(mine)]
        found += comm.alltoall((mine, mine * 2))
        found += [comm.scatter([mine, mine * 3] if comm.rank == 1 else None, root=1)]
        found += [comm.scatter([mine, mine * 3] if comm.rank == 0 else None)]
        gathered = comm.gather(mine)
        found += [] if gathered is None else gathered
        # Arrays of the host stay there.
        comm.send(x, other, wait=False)
        assert type(comm.recv(other)) is numpy.ndarray
        assert type(comm.bcast(x)) is numpy.ndarray
        return [host(y) for y in found]

    for rank, found in enumerate(on_two(body)):
        theirs = x + 1 - rank
        expected = [theirs, theirs, theirs[1:], theirs[:, ::2], x, x + 1, x, x + 1]
        expected += [x * (rank + 1), (x + 1) * (rank + 1), (x + 1) * (1 + 2 * rank)]
        expected += [x * (1 + 2 * rank)]
        expected += [x, x + 1] if rank == 0 else []
        assert len(found) == len(expected)
        for y, z in zip(found, expected):
            numpy.testing.assert_allclose(y, z)


def test_collectives_write_into_views(on_two):
    x = numbers(0, 2, 3)

    def body(comm, device):
        mine = device.send(x + comm.rank)
        found = []
        for call, shape in (
            (comm.all_reduce, (2, 3)),
            (comm.all_gather, (2, 2, 3)),
            (comm.all_to_all, (2, 3)),
            (comm.reduce_scatter, (3,)),
        ):
            wide = device.send(numpy.zeros((*shape[:-1], 2 * shape[-1])))
            work = call(mine, out=wide[..., ::2], wait=False)
            work.wait()
            assert not host(wide[..., 1::2]).any()
            found.append(host(wide[..., ::2]))
        view = device.send(x * (1 + comm.rank)).T
        found.append(host(comm.broadcast(view, root=1)))
        return found

    for rank, found in enumerate(on_two(body)):
        total = 2 * x + 1
        rows = numpy.stack([x[rank], x[rank] + 1])
        expected = [total, numpy.stack([x, x + 1]), rows, total[rank], 2 * x.T]
        for y, z in zip(found, expected):
            numpy.testing.assert_allclose(y, z)


def test_functions_of_chainermn(on_two):
    x = numbers(0, 3)

    def body(comm, device):
        leaf = renga.Variable(device.send(x * (comm.rank + 1)))
        if comm.rank == 0:
            phi = DF.send(F.exp(leaf), comm, 1)
            phi.backward()
        else:
            y = DF.recv(comm, 0)
            F.sum(y * leaf).backward()
        total = DF.allgather(comm, F.tanh(leaf))
        return host(leaf.grad), [host(y.array) for y in total]

    first, second = on_two(body)
    numpy.testing.assert_allclose(first[0], 2 * x * numpy.exp(x), rtol=1e-6)
    numpy.testing.assert_allclose(second[0], numpy.exp(x), rtol=1e-6)
    for _, total in (first, second):
        numpy.testing.assert_allclose(total, numpy.tanh([x, 2 * x]), rtol=1e-6)


class Net(renga.Chain):
    """Convolutions, pooling, normalization and a linear layer."""

    def __init__(self):
        super().__init__()
        init = renga.initializers.HeNormal(rng=numpy.random.RandomState(0))
        with self.init_scope(), renga.using_config("dtype", numpy.float64):
            self.conv1 = L.Convolution2D(3, 4, 3, pad=1, initialW=init)
            self.bn = L.BatchNormalization(4)
            self.conv2 = L.Convolution2D(4, 4, 4, 2, 1, initialW=init)
            self.fc = L.Linear(4 * 4 * 3, 3, initialW=init)

    def forward(self, x):
        h = F.max_pooling_2d(F.tanh(self.bn(self.conv1(x))), 3, 1, 1)
        return self.fc(F.tanh(self.conv2(h)))


def train(net, x, device=None, wrap=lambda optimizer: optimizer):
    """The parameters after three steps, on the host."""
    with renga.using_config("dtype", numpy.float64):
        optimizer = wrap(renga.optimizers.MomentumSGD(0.1)).setup(net)
        for i in range(3):
            given = x + i / 8
            batch = given if device is None else device.send(given)
            optimizer.update(lambda x: F.average((net(x) - 1) ** 2), batch)
    return net


def state(net):
    found = {}
    renga.serializers.DictionarySerializer(found).save(net)
    return {name: cuda.to_cpu(x) for name, x in found.items()}


def assert_same(found, expected):
    assert found.keys() == expected.keys()
    for name, x in expected.items():
        numpy.testing.assert_allclose(
            found[name].astype("d"), x.astype("d"), 1e-8, 1e-10, err_msg=name
        )


@pytest.mark.parametrize("mode", ["channel", "spatial"])
@pytest.mark.parametrize("moves_first", [False, True])
def test_links(on_two, mode, moves_first):
    x = numbers(1, *IMAGE)
    expected = state(train(Net(), x))

    def body(comm, device):
        with renga.using_config("dtype", numpy.float64):
            grid = S.SpatialGrid(comm) if mode == "spatial" else comm
            serial, example = Net(), (x,) if mode == "channel" else ()
            if moves_first:
                serial.to_device(device)
                example = tuple(map(device.send, example))
            net = parallelize(serial, grid, mode, *example).to_device(device)
        assert all(param.device == device for param in net.params())
        return state(train(net, x, device))

    for found in on_two(body):
        assert_same(found, expected)


def test_synchronized_normalization(on_two):
    x = numbers(1, *IMAGE)

    def make(link):
        with renga.using_config("dtype", numpy.float64):
            return renga.Sequential(link, F.tanh)

    expected = state(train(make(L.BatchNormalization(3, dtype="d")), x))

    def body(comm, device):
        link = MultiNodeBatchNormalization(3, comm, dtype="d")
        net = make(link).to_device(device)
        half = x[2 * comm.rank : 2 * comm.rank + 2]

        def wrap(optimizer):
            return create_multi_node_optimizer(optimizer, comm)

        return state(train(net, half, device, wrap))

    for found in on_two(body):
        assert_same(found, expected)


@pytest.mark.parametrize("shard", ["states", "gradients"])
def test_updating_reducers(on_two, shard):
    x = numbers(1, *IMAGE)

    class Plain(Net):
        def forward(self, x):
            return self.fc(F.tanh(self.conv2(F.tanh(self.conv1(x)))))

    expected = state(train(Plain(), x))

    def body(comm, device):
        net = Plain().to_device(device)
        half = x[2 * comm.rank : 2 * comm.rank + 2]

        def wrap(optimizer):
            return create_multi_node_optimizer(optimizer, comm, shard=shard)

        return state(train(net, half, device, wrap))

    for found in on_two(body):
        assert_same(found, expected)


def test_an_array_on_another_gpu_is_an_error(monkeypatch):
    monkeypatch.setitem(sys.modules, "renga._communicators_nccl", native)
    cuda.load_plugin()

    def rank(comm):
        comm = NcclCollectives(comm.native)
        comm.all_reduce(cuda.to_gpu(numpy.ones(3), comm.rank))
        with pytest.raises(ValueError, match=f"expected arrays on GPU {comm.rank}"):
            comm.all_reduce(cuda.to_gpu(numpy.ones(3), 1 - comm.rank))

    local.run(rank, ranks=2)
