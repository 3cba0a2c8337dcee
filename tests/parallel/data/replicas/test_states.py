"""States that one rank has loaded, against training that never stopped."""

import io

import numpy as np
import pytest

import renga
from renga.distributed import compression, create_multi_node_optimizer
from renga.link.distinct_params import distinct_params
from renga.parallel.data.replicas.states import broadcast_states
from tests.parallel.compression.nodes import on_nodes
from tests.parallel.compression.test_training import both
from tests.parallel.data.training_steps import (
    STEPS,
    Net,
    T,
    X,
    check,
    own_samples,
    parameters,
)

WAYS = {
    "plain": {},
    "double buffering": {"double_buffering": True},
    "states": {"shard": "states"},
    "gradients": {"shard": "gradients"},
    "compressed": {"compression": compression.TopK(1.0)},
    "accumulated": {"accumulate": 2},
}


def start(comm, way):
    options = dict(WAYS[way])
    count = options.pop("accumulate", 1)
    model = Net(seed=comm.rank)
    optimizer = renga.optimizers.Adam(0.05).setup(model)
    model.layers[3].disable_update()  # it has no state
    optimizer = create_multi_node_optimizer(optimizer, on_nodes(comm), **options)
    return model, optimizer.accumulate(count)


def go(comm, model, optimizer, steps):
    count = optimizer._steps.accumulation._count
    for step in steps:
        x, t = own_samples(comm, X[step]), own_samples(comm, T[step])
        for part in zip(np.array_split(x, count), np.array_split(t, count)):
            optimizer.update(model, *part)


def never_stopped(way):
    model = Net(seed=0)
    optimizer = renga.optimizers.Adam(0.05).setup(model)
    model.layers[3].disable_update()
    late = None
    for x, t in zip(X, T):
        model.cleargrads()
        model(x, t).backward()
        found = {name: param.grad for name, param in model.namedparams()}
        if way == "double buffering":
            found, late = late, found
        if found is not None:
            for name, param in model.namedparams():
                param.grad = found[name]
            optimizer.update()
    return parameters(model), optimizer


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("joins", [False, True])
def test_rank_0_alone_loads(some_ranks, way, joins):
    def run(comm):
        model, optimizer = start(comm, way)
        go(comm, model, optimizer, range(2))
        file = io.BytesIO()
        if joins:
            # All states come home: no other rank has to take part in saving.
            optimizer.join()
        if not joins or comm.rank == 0:
            renga.serializers.save_npz(file, both(model, optimizer))
        model, optimizer = start(comm, way)
        if comm.rank == 0:
            file.seek(0)
            renga.serializers.load_npz(file, both(model, optimizer))
        go(comm, model, optimizer, range(2, STEPS))
        # Shards are put together before they are looked at.
        renga.serializers.save_npz(io.BytesIO(), optimizer)
        optimizer.join()
        states = {
            f"{name}/{key}": np.array(x)
            for name, param in model.namedparams()
            for key, x in sorted((param.update_rule.state or {}).items())
        }
        return {**parameters(model), **states}, optimizer.t

    results = some_ranks(run)
    expected, optimizer = never_stopped(way)
    for name, param in optimizer.target.namedparams():
        for key, x in (param.update_rule.state or {}).items():
            expected[f"{name}/{key}"] = x
    for found, t in results:
        assert found.keys() == expected.keys()
        assert t == optimizer.t
    check([found for found, _ in results], expected, atol=1e-5)


def test_rank_0_alone_loads_between_updates(several_ranks):
    def run(comm):
        model, optimizer = start(comm, "plain")
        go(comm, model, optimizer, [0])
        file = io.BytesIO()
        renga.serializers.save_npz(file, both(model, optimizer))
        go(comm, model, optimizer, [1, 2])
        if comm.rank == 0:
            file.seek(0)
            renga.serializers.load_npz(file, both(model, optimizer))
        go(comm, model, optimizer, [1, 2])
        return parameters(model)

    expected, _ = never_stopped("plain")
    check(several_ranks(run), expected, atol=1e-5)


@pytest.mark.parametrize("further", [False, True])
def test_a_loss_that_uses_the_model_of_another_optimizer(some_ranks, further):
    """Whether or not one rank has made a further optimizer before."""

    def train(comm=None):
        seed = 0 if comm is None else comm.rank
        kept = []
        if further and comm is not None and comm.rank == comm.size - 1:
            one = renga.optimizers.Adam(0.05).setup(Net(20))
            kept.append(create_multi_node_optimizer(one, comm))
        models = [Net(seed), Net(seed + 10)]
        optimizers = [renga.optimizers.Adam(0.05).setup(model) for model in models]
        if comm is not None:
            optimizers = [create_multi_node_optimizer(o, comm) for o in optimizers]
        for batch in zip(X, T):
            if comm is not None:
                batch = [own_samples(comm, z) for z in batch]
            for i, optimizer in enumerate(optimizers):
                other = models[1 - i]
                optimizer.update(
                    lambda x, t, i=i, other=other: models[i](other.layers[0](x), t),
                    *batch,
                )
        first, second = map(parameters, models)
        return {**first, **{f"second{name}": x for name, x in second.items()}}

    check(some_ranks(train), train(), atol=1e-5)


def test_a_load_within_accumulated_batches_is_refused(some_ranks):
    def run(comm):
        model, optimizer = start(comm, "accumulated")
        file = io.BytesIO()
        go(comm, model, optimizer, [0])
        renga.serializers.save_npz(file, both(model, optimizer))
        go(comm, model, optimizer, [1])
        optimizer.update(model, X[2][:4], T[2][:4])
        file.seek(0)
        if comm.rank == 0:
            renga.serializers.load_npz(file, both(model, optimizer))
        before = parameters(model)
        with pytest.raises(RuntimeError, match="until 2 batches are accumulated"):
            optimizer.update(model, X[2][4:], T[2][4:])
        return before, parameters(model)

    for before, after in some_ranks(run):
        for name, value in before.items():
            np.testing.assert_array_equal(after[name], value)


def test_sharded_states_that_another_rank_alone_loads(some_ranks):
    def run(comm):
        model, optimizer = start(comm, "states")
        go(comm, model, optimizer, [0])
        file = io.BytesIO()
        renga.serializers.save_npz(file, both(model, optimizer))
        go(comm, model, optimizer, [1])
        if comm.rank == 1:
            file.seek(0)
            renga.serializers.load_npz(file, both(model, optimizer))
        go(comm, model, optimizer, [2])

    with pytest.raises(ValueError, match="expected rank 0 to load .* got rank 1"):
        some_ranks(run)


def test_what_is_broadcast(some_ranks):
    """Arrays, numbers, counts, float32 values and a dynamic scale; nothing else."""

    def run(comm):
        model = renga.Link()
        with model.init_scope():
            model.half = renga.Parameter(np.ones((2, 3), "float16"))
            model.scalar = renga.Parameter(np.array(2.0))
        optimizer = renga.optimizers.Adam().setup(model)
        optimizer.use_fp32_update()
        optimizer.loss_scaling(10)
        if comm.rank == 0:
            for _ in range(3):
                model.half.grad = np.ones((2, 3), "float16")
                model.scalar.grad = np.array(0.5)
                optimizer.update()
            model.scalar.update_rule.state["count"] = 7
        model.half.update_rule.mine = comm.rank
        broadcast_states(comm, optimizer, distinct_params(model))
        half, scalar = model.half.update_rule, model.scalar.update_rule
        assert half.mine == comm.rank
        return (
            (optimizer.t, optimizer.loss_scale, half.t, scalar.state["count"]),
            [half._fp32_param.array, half.state["m"], scalar.state["v"]],
        )

    results = some_ranks(run)
    for numbers, arrays in results:
        assert numbers == results[0][0] and numbers[0] == 3 and numbers[3] == 7
        for x, first in zip(arrays, results[0][1]):
            assert x.dtype == first.dtype
            np.testing.assert_array_equal(x, first)


@pytest.mark.parametrize("way", ["load_npz", "copyparams"])
def test_rank_0_alone_loads_a_model_without_its_optimizer(some_ranks, way):
    """The momenta go on, on all ranks."""
    x = np.random.RandomState(7).randn(6, 3)

    def model_of(seed):
        weights = np.random.RandomState(seed).randn(2, 3)
        return renga.links.Linear(3, 2, initialW=weights)

    def train(optimizer, loads, own):
        model = optimizer.target
        for step in range(4):
            if step == 2 and loads:
                if way == "copyparams":
                    model.copyparams(model_of(5))
                else:
                    file = io.BytesIO()
                    renga.serializers.save_npz(file, model_of(5))
                    renga.serializers.load_npz(io.BytesIO(file.getvalue()), model)
            optimizer.update(lambda x: renga.functions.mean(model(x) ** 2), x[own])
        return model.W.array

    def run(comm):
        with renga.using_config("dtype", np.float64):
            optimizer = create_multi_node_optimizer(
                renga.optimizers.MomentumSGD(0.1), comm
            )
            own = np.array_split(np.arange(6), comm.size)[comm.rank]
            return train(optimizer.setup(model_of(1)), comm.rank == 0, own)

    with renga.using_config("dtype", np.float64):
        expected = train(
            renga.optimizers.MomentumSGD(0.1).setup(model_of(1)), True, slice(None)
        )
    for W in some_ranks(run):
        np.testing.assert_allclose(W, expected, 1e-9)
