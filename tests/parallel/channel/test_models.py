"""Whole channel-parallel models: training, files, random zeros, groups."""

import io
import itertools

import numpy as np
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga import optimizer_hooks, optimizers, serializers
from renga.communicators import local, simulated
from renga.distributed import create_multi_node_optimizer
from renga.links.parallel.channel.batch_normalization import ParallelBatchNormalization
from renga.links.parallel.channel.convolution_2d import ParallelConvolution2D
from renga.links.parallel.channel.linear import ParallelLinear
from renga.parallel.groups import create_groups
from renga.parallel.parallelize import parallelize
from renga.parallel.placement.sharded_parameter import ShardedParameter
from renga.parallel.redistribute import redistribute
from tests.links.parallel.differentiate import in_float64

CLASSES, BATCH = 3, 6


class Clipped(optimizers.SGD):
    """With hooks that need the norms of whole gradients."""

    def setup(self, link):
        super().setup(link)
        self.add_hook(optimizer_hooks.GradientLARS(weight_decay=0.1))
        self.add_hook(optimizer_hooks.GradientClipping(0.05))
        return self


OPTIMIZERS = [
    lambda: optimizers.MomentumSGD(0.1),
    lambda: optimizers.Adam(0.01),
    lambda: Clipped(0.1),
]


class Net(renga.Chain):
    """A residual block, a reshape, an embedding: all that connects layers."""

    def __init__(self):
        super().__init__()
        random = np.random.RandomState(0)

        def init(a):
            a[...] = random.uniform(-0.4, 0.4, a.shape)

        with self.init_scope():
            self.words = L.EmbedID(7, 5, init)
            self.first = L.Convolution2D(None, 5, 3, 1, 1, initialW=init)
            self.block = renga.Sequential(
                L.BatchNormalization(5, initial_gamma=init),
                F.elu,
                L.Convolution2D(5, 5, 3, 1, 1, nobias=True, initialW=init),
                L.BatchNormalization(axis=(0, 2, 3)),
            )
            self.up = L.Deconvolution2D(5, 4, 4, 2, 1, initialW=init, initial_bias=init)
            self.grouped = L.Convolution2D(4, 6, 2, 2, groups=2, initialW=init)
            self.bn = L.BatchNormalization(6, use_gamma=False)
            self.hidden = L.Linear(None, 5, initialW=init)
            self.last = L.Linear(5, CLASSES, initialW=init)

    def forward(self, x, words):
        h = self.first(x)
        h = F.elu(self.block(h) + h)
        h = F.average_pooling_2d(h, 2, 2)
        h = F.tanh(self.bn(self.grouped(self.up(h))))
        h = self.hidden(h) * F.tanh(self.words(words))
        return self.last(F.tanh(h))


def batches(count=3):
    random = np.random.RandomState(1)
    for _ in range(count):
        yield (
            random.normal(size=(BATCH, 3, 6, 4)),
            random.randint(0, 7, BATCH).astype("i4"),
            random.randint(0, CLASSES, BATCH).astype("i4"),
        )


def example():
    return next(batches())[:2]


def train(model, optimizer, count=3):
    losses = []
    for x, words, t in batches(count):
        loss = F.softmax_cross_entropy(model(x, words), t)
        losses.append(float(loss.array))
        model.cleargrads()
        loss.backward()
        optimizer.update()
    return losses


def values_of(model):
    """Parameters and statistics, as one rank alone has them; all ranks take part."""
    target = {}
    serializers.DictionarySerializer(target).save(model)
    return target


def assert_same(actual, expected, rtol=1e-9):
    assert actual.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_allclose(
            np.asarray(actual[name], "f8"),
            np.asarray(value, "f8"),
            rtol,
            1e-11,
            err_msg=name,
        )


def trained_alone(make, count=3):
    with renga.using_config("dtype", np.float64):
        model = Net()
        optimizer = make().setup(model)
        losses = train(model, optimizer, count)
        target = {}
        serializers.DictionarySerializer(target, "model/").save(model)
        serializers.DictionarySerializer(target, "optimizer/").save(optimizer)
        return losses, target


@pytest.mark.parametrize("make", OPTIMIZERS)
@pytest.mark.parametrize("has_example", [True, False], ids=["example", "no example"])
def test_three_steps(some_ranks, make, has_example):
    losses, expected = trained_alone(make)

    @in_float64
    def on_rank(comm):
        model = Net()
        with renga.using_config("train", False):
            model(*example())
        model = parallelize(model, comm, "channel", *(example() if has_example else ()))
        optimizer = make().setup(model)
        found = train(model, optimizer)
        target = {}
        serializers.DictionarySerializer(target, "model/").save(model)
        serializers.DictionarySerializer(target, "optimizer/").save(optimizer)
        return found, target

    for found, target in some_ranks(on_rank):
        np.testing.assert_allclose(found, losses, rtol=1e-9)
        assert_same(target, expected, rtol=1e-7)


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_replaced_links_and_layouts_of_activations(size, capsys):
    @in_float64
    def on_rank(comm):
        model = parallelize(Net(), comm, "channel", *example())
        kinds = {path: type(link) for path, link in model.namedlinks()}
        layouts = {
            path: (getattr(link, "input_layout", None), link.output_layout)
            for path, link in model.namedlinks()
            if hasattr(link, "output_layout")
        }
        sharded = all(isinstance(p, ShardedParameter) for p in model.params())
        held = sum(p.size for p in model.params())
        return kinds, layouts, sharded, comm.allreduce_obj(held)

    machine = simulated.Machine(size, node_latency=2e-5, node_bandwidth=4e9)
    for kinds, layouts, sharded, held in simulated.run(on_rank, size, machine).results:
        assert issubclass(kinds["/first"], ParallelConvolution2D)
        assert issubclass(kinds["/block/1"], ParallelBatchNormalization)
        assert issubclass(kinds["/hidden"], ParallelLinear)
        assert layouts["/first"] == ("replicated", "channel")
        assert layouts["/block/2"] == ("channel", "channel")
        assert layouts["/words"] == (None, "channel")
        assert layouts["/last"] == ("channel", "replicated")
        assert sharded
        serial = Net()
        serial(*[a.astype("f4") if a.dtype == "f8" else a for a in example()])
        assert held == sum(p.size for p in serial.params())
    text = capsys.readouterr().out
    if text:  # of rank 0
        assert "/first    ParallelConvolution2D" in text
        assert "each rank receives" in text


@pytest.mark.parametrize("before", [1, 2, 3])
@pytest.mark.parametrize("after", [1, 2, 4])
def test_files_can_be_loaded_with_any_number_of_ranks(before, after):
    make = OPTIMIZERS[1]

    def run(comm, file, count, path):
        with renga.using_config("dtype", np.float64):
            model = Net()
            if comm is not None:
                model = parallelize(model, comm, "channel", *example())
            optimizer = make().setup(model)
            state = renga.Chain()
            state.serialize = lambda s: (
                model.serialize(s["model"]),
                optimizer.serialize(s["optimizer"]),
            )
            if file is not None:
                serializers.load_npz(io.BytesIO(file), state)
            train(model, optimizer, count)
            written = io.BytesIO()
            serializers.save_npz(written, state)
            return written.getvalue()

    first = local.run(run, None, 2, None, ranks=before)
    second = local.run(run, first[0], 1, None, ranks=after)
    serial = run(None, None, 2, None)
    expected = np.load(io.BytesIO(run(None, serial, 1, None)))
    for file in second:
        assert_same(dict(np.load(io.BytesIO(file))), dict(expected), rtol=1e-7)


def test_a_serial_file_initializes_links_without_shapes(some_ranks):
    serial = L.Convolution2D(4, 3, 3)
    deconvolution = L.Deconvolution2D(3, 2, 2)
    file = io.BytesIO()
    serializers.save_npz(file, renga.Chain(a=serial, b=deconvolution))

    def on_rank(comm):
        model = renga.Chain(
            a=ParallelConvolution2D(comm, None, 3, 3),
            b=ParallelLinear(comm, None, 3),
        )
        serializers.load_npz(io.BytesIO(file.getvalue()), model["a"], "a/")
        return model["a"].W.whole()

    for W in some_ranks(on_rank):
        np.testing.assert_array_equal(W, serial.W.array)


def test_a_file_that_does_not_fit_changes_nothing(some_ranks):
    file = io.BytesIO()
    whole = renga.Chain(a=L.Convolution2D(4, 3, 3), b=L.BatchNormalization(4))
    serializers.save_npz(file, renga.Chain(m=whole, z=L.Linear(4, 7)))

    def on_rank(comm):
        layouts = dict(input_layout="replicated", output_layout="channel")
        model = renga.Chain(
            a=ParallelConvolution2D(comm, 4, 3, 3),
            b=ParallelBatchNormalization(comm, 4, **layouts),
        )
        waiting = ParallelConvolution2D(comm, None, 3, 3)
        before = {name: param.array.copy() for name, param in model.namedparams()}
        mean = model.b.avg_mean
        old = mean.copy()
        for part in (renga.Chain(m=model), renga.Chain(m=renga.Chain(a=waiting))):
            part.add_link("z", L.Linear(4, 5))
            with pytest.raises(ValueError, match="z/W"):
                serializers.load_npz(io.BytesIO(file.getvalue()), part)
        for name, param in model.namedparams():
            np.testing.assert_array_equal(param.array, before[name])
        assert model.b.avg_mean is mean
        np.testing.assert_array_equal(mean, old)
        return waiting.W.is_initialized

    assert not any(some_ranks(on_rank))


def test_random_zeros_differ_between_shards_and_agree_elsewhere(
    monkeypatch, some_ranks
):
    x = np.ones((4, 40, 8, 8), "f4")
    # Every rank's generator is in the same state, as after parallelize().
    monkeypatch.setattr(np.random, "random_sample", lambda: 0.625)

    def on_rank(comm):
        layouts = dict(input_layout="replicated", output_layout="channel")
        bn = ParallelBatchNormalization(comm, 40, initial_beta=1, **layouts)
        whole = F.dropout(F.relu(renga.Variable(x)), 0.5).array
        shard = F.dropout(F.relu(bn(x)), 0.5).array
        again = F.dropout(redistribute(bn(x), comm, "channel", "replicated"), 0.5).array
        return shard[:, : 40 // comm.size] > 0, whole, again

    results = some_ranks(on_rank)
    for shard, whole, again in results:
        assert 0.45 < np.mean(shard) < 0.55
        np.testing.assert_array_equal(whole, results[0][1])
        np.testing.assert_array_equal(again, results[0][2])
    for (one, *_), (other, *_) in itertools.combinations(results, 2):
        # Independent zeros agree in half of the places.
        few = min(one.shape[1], other.shape[1])
        assert 0.4 < np.mean(one[:, :few] == other[:, :few]) < 0.6


def test_groups(ranks):
    def on_rank(comm):
        groups = create_groups(comm, channel=2 if comm.size % 2 == 0 else 1)
        assert groups.data.size * groups.channel.size == comm.size
        assert groups.spatial.size == 1
        members = groups.channel.allgather_obj(comm.rank)
        with pytest.raises(ValueError, match=f"expected {comm.size} ranks, got"):
            create_groups(comm, data=comm.size, channel=2)
        return members

    for rank, members in enumerate(ranks(on_rank)):
        assert rank in members
        assert members == list(range(members[0], members[0] + len(members)))


def test_data_and_channel_parallelism_together(ranks):
    losses, expected = trained_alone(OPTIMIZERS[0])

    @in_float64
    def on_rank(comm):
        groups = create_groups(comm, channel=2 if comm.size == 4 else comm.size)
        model = parallelize(Net(), groups.channel, "channel", *example())
        optimizer = create_multi_node_optimizer(OPTIMIZERS[0](), groups.data)
        optimizer.setup(model)
        train(model, optimizer)
        return values_of(model)

    for values in ranks(on_rank):
        wanted = {k[6:]: v for k, v in expected.items() if k.startswith("model/")}
        assert_same(values, wanted, rtol=1e-7)


def test_unknown_strategy(some_ranks):
    def on_rank(comm):
        with pytest.raises(ValueError, match="expected strategy to be one of channel"):
            parallelize(Net(), comm, "pipeline")
        return True

    assert all(some_ranks(on_rank))
