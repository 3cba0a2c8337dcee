"""Training with compression, against training without."""

import functools
import io

import numpy as np
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga.communicators import local
from renga.communicators.work import Work
from renga.distributed import (
    compression,
    create_groups,
    create_multi_node_optimizer,
    parallelize,
)
from renga.distributed.compression import CompressionHook
from renga.parallel.data import buckets
from renga.serializers import NpzDeserializer
from tests import files
from tests.parallel.compression.nodes import Identity, make_compressed, on_nodes
from tests.parallel.data.training_steps import (
    STEPS,
    T,
    X,
    check,
    make,
    own_samples,
    parameters,
    train,
)

ALL = {
    "Cast": lambda: compression.Cast("bfloat16"),
    "QSGD": lambda: compression.QSGD(bits=4),
    "TernGrad": compression.TernGrad,
    "OneBit": compression.OneBit,
    "TopK": lambda: compression.TopK(0.1),
    "RandomK": lambda: compression.RandomK(0.1),
    "DGC": lambda: compression.DGC(0.1, clip=1.0, warmup_steps=1),
    "PowerSGD": lambda: compression.PowerSGD(rank=2),
    "Auto": compression.Auto,
    "Identity": Identity,
}


@pytest.fixture(params=[4 << 20, 40], ids=["one bucket", "small buckets"])
def bucket_bytes(request, monkeypatch):
    monkeypatch.setattr(buckets, "BUCKET_BYTES", request.param)


@pytest.fixture(params=ALL, ids=list(ALL))
def compressor(request):
    return ALL[request.param]()


def uncompressed(comm, external=False):
    comm = on_nodes(comm)
    model, optimizer = make(comm)
    optimizer.add_bucket_hook(
        lambda bucket: comm.all_reduce(bucket.gradients, "mean", wait=False)
    )
    return train(comm, model, optimizer, external=external)


@pytest.mark.parametrize("external", [False, True])
@pytest.mark.parametrize(
    "lossless", [Identity(), compression.TopK(1.0), compression.RandomK(1.0)], ids=repr
)
def test_lossless_compression_is_the_mean(some_ranks, bucket_bytes, lossless, external):
    def compressed(comm):
        comm = on_nodes(comm)
        model, optimizer = make_compressed(comm, lossless)
        return train(comm, model, optimizer, external=external)

    for got, expected in zip(
        some_ranks(compressed), some_ranks(uncompressed, external)
    ):
        for name, value in expected.items():
            np.testing.assert_array_equal(got[name], value)


def test_all_ranks_have_the_same_bits(some_ranks, bucket_bytes, compressor):
    def run(comm):
        comm = on_nodes(comm)
        return train(comm, *make_compressed(comm, compressor))

    results = some_ranks(run)
    start = parameters(make()[0])
    for params in results:
        for name, value in params.items():
            np.testing.assert_array_equal(value, results[0][name])
            assert np.isfinite(value).all()
    assert any((results[0][name] != start[name]).any() for name in start)


def test_resumed_training_has_the_same_bits(some_ranks, compressor):
    def run(comm):
        comm = on_nodes(comm)
        model, optimizer = make_compressed(comm, compressor)
        train(comm, model, optimizer, slice(0, 2))
        file = io.BytesIO()
        renga.serializers.save_npz(file, both(model, optimizer))
        expected = train(comm, model, optimizer, slice(2, STEPS))
        file.seek(0)
        model, optimizer = make_compressed(comm, compressor)
        renga.serializers.load_npz(file, both(model, optimizer))
        return expected, train(comm, model, optimizer, slice(2, STEPS))

    for expected, resumed in some_ranks(run):
        for name, value in expected.items():
            np.testing.assert_array_equal(resumed[name], value)


def test_files_without_and_with_states(some_ranks):
    def run(comm, saved_with, loaded_with):
        comm = on_nodes(comm)
        file = io.BytesIO()
        for hook in (saved_with, loaded_with):
            model, optimizer = make(comm)
            if hook:
                optimizer.add_bucket_hook(CompressionHook(compression.OneBit(), comm))
            if hook is saved_with:
                train(comm, model, optimizer, slice(0, 1))
                renga.serializers.save_npz(file, both(model, optimizer))
                file.seek(0)
        renga.serializers.load_npz(file, both(model, optimizer))
        return train(comm, model, optimizer, slice(1, STEPS))

    for pair in ((True, False), (False, True)):
        results = some_ranks(run, *pair)
        check(results, results[0], atol=0)


def both(model, optimizer):
    class Run:
        def serialize(self, serializer):
            optimizer.serialize(serializer["optimizer"])
            model.serialize(serializer["model"])

    return Run()


def saved_again(make, snapshot):
    """What a file has of an optimizer that has loaded a snapshot."""
    _, optimizer = make()
    NpzDeserializer(snapshot).load(optimizer)
    return files.saved(optimizer)


def test_states_of_another_node_are_not_loaded(several_ranks):
    def run(comm):
        comm = on_nodes(comm)
        make = functools.partial(make_compressed, comm, compression.TopK(0.1))
        model, optimizer = make()
        train(comm, model, optimizer, slice(0, 1))
        snapshot = comm.bcast_obj(files.saved(optimizer))  # rank 0's
        return saved_again(make, snapshot).keys() == snapshot.keys()

    loaded = several_ranks(run)
    # Ranks of node 0 that do not communicate with other nodes have no states either.
    assert loaded[0] and not any(loaded[1:])


def test_states_of_other_shards_are_not_loaded():
    """Ranks that share a model by channels keep back gradients of their own shards."""

    def make(comm):
        groups = create_groups(comm, channel=2)
        model = renga.Sequential(L.Linear(8, 6), F.tanh, L.Linear(6, 8))
        model = parallelize(model, groups.channel, "channel", np.zeros((2, 8), "f"))
        optimizer = create_multi_node_optimizer(
            renga.optimizers.SGD(), groups.data, compression=compression.TopK(0.1)
        )
        return model, optimizer.setup(model)

    def run(comm):
        model, optimizer = make(comm)
        optimizer.update(lambda x: F.mean(model(x) ** 2), np.ones((2, 8), "f"))
        snapshot = comm.bcast_obj(files.saved(optimizer))  # rank 0's
        again = saved_again(lambda: make(comm), snapshot)
        kept = {key: x for key, x in again.items() if "bucket_hook/state" in key}
        return [
            key for key, x in kept.items() if x.ndim
        ]  # the number of steps has none

    # Ranks 0 and 1 are on node 0.
    loaded = local.run(run, ranks=4, nodes=2)
    assert loaded[0] and not any(loaded[1:])


def test_files_of_0_1_0(several_ranks):
    """They tell the node alone."""

    def run(comm):
        comm = on_nodes(comm)
        make = functools.partial(make_compressed, comm, compression.TopK(0.1))
        model, optimizer = make()
        train(comm, model, optimizer, slice(0, 1))
        snapshot = files.saved(optimizer)
        snapshot["bucket_hook/node"] = snapshot["bucket_hook/node"][:2]
        again = saved_again(make, snapshot)
        states = [key for key in snapshot if "bucket_hook/state" in key]
        return all((again[key] == snapshot[key]).all() for key in states)

    assert all(several_ranks(run))


def test_residuals_survive_a_replaced_parameter(some_ranks):
    def run(comm, replaces):
        comm = on_nodes(comm)
        model, optimizer = make_compressed(comm, compression.TopK(0.1))
        train(comm, model, optimizer, slice(0, 2))
        if replaces:  # the same values: buckets are made again
            layer = model.layers[1]
            rule = layer.b.update_rule
            with layer.init_scope():
                layer.b = renga.Parameter(layer.b.array.copy())
            layer.b.update_rule = rule
        return train(comm, model, optimizer, slice(2, STEPS))

    check(some_ranks(run, True), some_ranks(run, False)[0], atol=0)


@pytest.mark.parametrize("zero_fill", [True, False])
def test_unused_gradients(some_ranks, compressor, zero_fill):
    def run(comm):
        comm = on_nodes(comm)
        model, optimizer = make_compressed(comm, compressor, zero_fill=zero_fill)
        for step in range(STEPS):
            batch = own_samples(comm, X[step]), own_samples(comm, T[step])
            used = [(0, 1), (1, 0), (0,), (1,)][(comm.rank + step) % 4]
            optimizer.update(model, *batch, used)
        return parameters(model)

    results = some_ranks(run)
    check(results, results[0], atol=0)
    assert all(np.isfinite(x).all() for x in results[0].values())


def test_what_was_kept_is_used_where_no_rank_has_a_gradient(some_ranks):
    def run(comm, zero_fill):
        comm = on_nodes(comm)
        model, optimizer = make_compressed(
            comm, compression.TopK(0.1), kind=renga.optimizers.SGD, zero_fill=zero_fill
        )
        for step in range(STEPS):
            batch = own_samples(comm, X[step]), own_samples(comm, T[step])
            optimizer.update(model, *batch, (0, 1) if step else (0, 1, 2, 3))
        return parameters(model)

    # To SGD zeros are no gradient.
    check(some_ranks(run, False), some_ranks(run, True)[0], atol=0)


def test_ranks_that_have_joined(some_ranks, compressor):
    def run(comm):
        comm = on_nodes(comm)
        model, optimizer = make_compressed(comm, compressor)
        for x, t in zip(X[: comm.rank + 1], T):
            optimizer.update(model, own_samples(comm, x), own_samples(comm, t))
        optimizer.join()
        return parameters(model)

    results = some_ranks(run)
    check(results, results[0], atol=0)


def test_gradients_that_are_not_finite_skip_the_step(some_ranks, compressor):
    def run(comm):
        comm = on_nodes(comm)
        model, optimizer = make_compressed(comm, compressor)
        optimizer.loss_scaling()
        train(comm, model, optimizer, slice(0, 1))
        before = parameters(model)
        bad = X[1].copy()
        if comm.rank == comm.size - 1:
            bad[:] = np.nan
        optimizer.update(model, own_samples(comm, bad), own_samples(comm, T[1]))
        skipped = parameters(model)
        return before, skipped, train(comm, model, optimizer, slice(2, STEPS))

    results = some_ranks(run)
    for before, skipped, after in results:
        for name, value in before.items():
            np.testing.assert_array_equal(skipped[name], value)
            assert np.isfinite(after[name]).all()
            np.testing.assert_array_equal(after[name], results[0][2][name])


@pytest.mark.parametrize("name", [name for name in ALL if name != "Auto"])
def test_a_skipped_step_leaves_what_was_kept(some_ranks, name):
    def run(comm, overflows):
        comm = on_nodes(comm)
        model, optimizer = make_compressed(comm, ALL[name]())
        optimizer.loss_scaling()
        train(comm, model, optimizer, slice(0, 1))
        if overflows:
            bad = X[1] * (np.nan if comm.rank == comm.size - 1 else 1)
            optimizer.update(model, own_samples(comm, bad), own_samples(comm, T[1]))
        return train(comm, model, optimizer, slice(2, STEPS))

    # Scales are powers of two: they change no bit.
    check(some_ranks(run, True), some_ranks(run, False)[0], atol=0)


def test_compression_is_between_nodes(ranks):
    def run(comm):
        encoded = []

        class Recorded(Identity):
            def encode(self, x, state):
                encoded.append(x.size)
                return super().encode(x, state)

        model = make()[0]
        optimizer = create_multi_node_optimizer(
            renga.optimizers.SGD().setup(model), comm, compression=Recorded()
        )
        train(comm, model, optimizer, slice(0, 1))
        return comm.inter_size, sum(comm.allgather_obj(len(encoded)))

    for nodes, encoded in ranks(run):
        assert (encoded > 0) == (nodes > 1)


@pytest.mark.parametrize(("count", "nodes"), [(3, 2), (4, 3), (5, 2)])
def test_nodes_of_different_sizes(count, nodes):
    def run(comm, compressor):
        return train(comm, *make_compressed(comm, compressor), range(2))

    def train(comm, model, optimizer, steps):
        for i in steps:
            optimizer.update(model, own_samples(comm, X[i]), own_samples(comm, T[i]))
        return parameters(model)

    model, optimizer = make()
    for x, t in zip(X[:2], T[:2]):
        optimizer.update(model, x, t)
    # 5 ranks have 3, 3, 2, 2, 2 of 12 samples.
    for make_compressor in ALL.values():
        results = local.run(run, make_compressor(), ranks=count, nodes=nodes)
        check(results, results[0], atol=0)
    check(local.run(run, Identity(), ranks=count, nodes=nodes), parameters(model))


def test_a_users_hook_gets_every_gradient_once(some_ranks, bucket_bytes):
    def run(comm):
        seen = []
        model, optimizer = make(comm)

        def hook(bucket):
            seen.extend(bucket.names)
            return comm.all_reduce(bucket.gradients, "mean", wait=False)

        optimizer.add_bucket_hook(hook)
        return train(comm, model, optimizer), seen

    model, optimizer = make()
    for x, t in zip(X, T):
        optimizer.update(model, x, t)
    results = some_ranks(run)
    check([params for params, _ in results], parameters(model))
    names = sorted(name for name, _ in model.namedparams())
    for _, seen in results:
        for step in range(STEPS):
            assert sorted(seen[8 * step : 8 * step + 8]) == names


def test_invalid_hooks(some_ranks):
    def run(comm):
        model, optimizer = make(comm)
        with pytest.raises(TypeError, match="expected a function"):
            optimizer.add_bucket_hook(3)
        optimizer.add_bucket_hook(
            lambda b: comm.all_reduce(b.gradients[:1], wait=False)
        )
        with pytest.raises(RuntimeError, match="second"):
            optimizer.add_bucket_hook(print)
        with pytest.raises(ValueError, match="bucket hook: expected a Work whose"):
            optimizer.update(model, X[0], T[0])
        with pytest.raises(ValueError, match="double buffering"):
            make(comm, double_buffering=True)[1].add_bucket_hook(print)
        with pytest.raises(TypeError, match="expected a Compressor"):
            make(comm, compression="bfloat16")
        with pytest.raises(ValueError, match="expected compression without double"):
            make(comm, compression=compression.OneBit(), double_buffering=True)

    some_ranks(run)


@pytest.mark.parametrize("result", [None, 5, "array", "work of an array"])
def test_hooks_that_return_no_work(some_ranks, result):
    def hook(bucket):
        array = bucket.gradients[0]
        works = {"array": array, "work of an array": Work(None, lambda: array)}
        return works.get(result, result)

    def run(comm):
        model, optimizer = make(comm)
        optimizer.add_bucket_hook(hook)
        kind = ValueError if result == "work of an array" else TypeError
        with pytest.raises(kind, match="bucket hook: expected a Work"):
            optimizer.update(model, X[0], T[0])

    some_ranks(run)
