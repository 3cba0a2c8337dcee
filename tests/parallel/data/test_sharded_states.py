"""Sharded optimizer states against whole ones: the same bits."""

import collections
import functools
import io
import threading

import numpy as np
import pytest

import renga
import renga.functions as F
from renga import _core, optimizer_hooks
from renga.communicators.work import Work
from renga.distributed import create_multi_node_optimizer
from renga.parallel.data import buckets
from renga.parallel.data.sharded_states.scatter_reducer import (
    ScatterReducer,
)
from renga.parallel.data.sharded_states.states import ShardedStates
from tests.catalogue import OPTIMIZERS
from tests.parallel.compression.nodes import Identity, make_compressed, on_nodes
from tests.parallel.compression.test_training import both
from tests.parallel.data.training_steps import (
    STEPS,
    T,
    X,
    make,
    own_samples,
    parameters,
    train,
    train_only,
)

SHARDS = ["states", "gradients", "parameters"]


@pytest.fixture(params=["one bucket", "small buckets"])
def bucket_bytes(request, monkeypatch):
    if request.param == "small buckets":
        monkeypatch.setattr(buckets, "BUCKET_BYTES", 160)


def check_same(ranks, run):
    expected = ranks(run, None)
    for shard in SHARDS:
        for got, params in zip(ranks(run, shard), expected):
            for name, value in params.items():
                np.testing.assert_array_equal(
                    got[name], value, err_msg=f"{name} {shard}"
                )


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_same_bits_for_every_rule(some_ranks, name):
    def kind(rate):
        return OPTIMIZERS[name].make()

    check_same(some_ranks, lambda comm, s: train(comm, *make(comm, kind, shard=s)))


@pytest.mark.parametrize("kind", [renga.optimizers.Adam, renga.optimizers.LAMB])
def test_same_bits_for_rules_of_elements_and_of_norms(ranks, kind):
    check_same(ranks, lambda comm, s: train(comm, *make(comm, kind, shard=s)))


@pytest.mark.parametrize("external", [False, True])
def test_same_bits_in_buckets(ranks, bucket_bytes, external):
    def run(comm, shard):
        model, optimizer = make(comm, renga.optimizers.Adam, shard=shard)
        if external:
            comm.bcast_data(model)
        return train(comm, model, optimizer, external=external)

    check_same(ranks, run)


@pytest.mark.parametrize(
    "hook",
    [
        lambda: optimizer_hooks.WeightDecay(0.1),
        lambda: optimizer_hooks.Lasso(0.1),
        lambda: optimizer_hooks.GradientHardClipping(-0.01, 0.01),
        optimizer_hooks.GradientLARS,
    ],
)
def test_same_bits_with_hooks(some_ranks, hook):
    def run(comm, shard):
        model, optimizer = make(comm, shard=shard)
        optimizer.add_hook(hook())
        return train(comm, model, optimizer)

    check_same(some_ranks, run)


class CountingRule(renga.UpdateRule):
    """A rule of the user's, whose state is no array like the parameter."""

    def init_state(self, param):
        self.state["count"] = np.zeros(2)

    def update_core(self, param):
        self.state["count"] += (1, 2)
        norm = float(np.sqrt(np.square(param.grad.astype("float64")).sum()))
        param.array -= param.grad.dtype.type(norm / self.state["count"][1]) * param.grad


@pytest.mark.parametrize("resumes", [False, True])
def test_rules_of_the_user(some_ranks, resumes):
    def run(comm, shard):
        def new():
            model, optimizer = make(comm, shard=shard)
            for param in model.params():
                param.update_rule = CountingRule()
            return model, optimizer

        model, optimizer = new()
        if resumes:
            train(comm, model, optimizer, slice(0, 2))
            file = io.BytesIO()
            renga.serializers.save_npz(file, both(model, optimizer))
            file.seek(0)
            model, optimizer = new()
            renga.serializers.load_npz(file, both(model, optimizer))
            return train(comm, model, optimizer, slice(2, STEPS))
        return train(comm, model, optimizer)

    check_same(some_ranks, run)


class CountingMethod(renga.GradientMethod):
    """An optimizer of the user's, whose rules do not take its hyperparameters."""

    def __init__(self, rate):
        super().__init__()

    def create_update_rule(self):
        return CountingRule()


def test_optimizers_of_the_user(some_ranks):
    def run(comm, shard):
        return train(comm, *make(comm, CountingMethod, shard=shard))

    check_same(some_ranks, run)


def test_gradients_in_half_precision(some_ranks):
    def run(comm, shard):
        group = comm.split(0, comm.rank)
        group.set_config("allreduce_grad_dtype", value=np.float16)
        return train(group, *make(group, shard=shard))

    check_same(some_ranks, run)


def test_clipping_by_the_norm_of_all_gradients(some_ranks):
    def run(comm, shard):
        model, optimizer = make(comm, shard=shard)
        optimizer.add_hook(optimizer_hooks.GradientClipping(0.01))
        return train(comm, model, optimizer)

    expected = some_ranks(run, None)
    for shard in SHARDS:
        for got, params in zip(some_ranks(run, shard), expected):
            for name, value in params.items():  # squares are added in another order
                np.testing.assert_allclose(got[name], value, rtol=0, atol=1e-6)


def test_overflow_on_one_rank_skips_the_step_on_all(some_ranks):
    def run(comm, shard):
        model, optimizer = make(comm, shard=shard)
        optimizer.loss_scaling()
        train(comm, model, optimizer, slice(0, 1))
        x = np.full_like(X[1], np.inf if comm.rank == 0 else 0)
        optimizer.update(model, own_samples(comm, x), own_samples(comm, T[1]))
        assert optimizer.loss_scale == 1.0
        return train(comm, model, optimizer, slice(2, STEPS))

    check_same(some_ranks, run)


def test_float16_parameters_with_float32_copies(some_ranks):
    def run(comm, shard):
        model, optimizer = make(comm, shard=shard)
        for param in model.params():
            param.array = param.array.astype("float16")
        optimizer.use_fp32_update()
        x = X.astype("float16")
        for step in range(STEPS):
            optimizer.update(
                model, own_samples(comm, x[step]), own_samples(comm, T[step])
            )
        return parameters(model)

    check_same(some_ranks, run)


def test_accumulated_and_hooked_gradients(some_ranks):
    def run(comm, shard):
        comm = on_nodes(comm)
        model, optimizer = make_compressed(comm, Identity(), shard=shard)
        optimizer.accumulate(2)
        for x, t in zip(X, T):
            x, t = own_samples(comm, x), own_samples(comm, t)
            optimizer.update(model, x[:1], t[:1])
            optimizer.update(model, x[1:], t[1:])
        return parameters(model)

    check_same(some_ranks, run)


@pytest.mark.parametrize("shard", SHARDS)
@pytest.mark.parametrize("rule", [renga.optimizers.Adam, renga.optimizers.LAMB])
def test_resumed_training_has_the_same_bits(some_ranks, shard, rule):
    def run(comm, saved_with, loaded_with):
        model, optimizer = make(comm, rule, shard=saved_with)
        train(comm, model, optimizer, slice(0, 2))
        file = io.BytesIO()
        renga.serializers.save_npz(file, both(model, optimizer))
        expected = train(comm, model, optimizer, slice(2, STEPS))
        model, optimizer = make(comm, rule, shard=loaded_with)
        file.seek(0)
        renga.serializers.load_npz(file, both(model, optimizer))
        return expected, train(comm, model, optimizer, slice(2, STEPS))

    for pair in ((shard, shard), (shard, None), (None, shard)):
        for expected, resumed in some_ranks(run, *pair):
            for name, value in expected.items():
                np.testing.assert_array_equal(resumed[name], value)


def test_a_parameter_that_replaces_another(some_ranks):
    def run(comm, shard):
        model, optimizer = make(comm, shard=shard)
        train(comm, model, optimizer, slice(0, 2))
        layer = model.layers[2]
        rule = layer.W.update_rule
        with layer.init_scope():
            layer.W = renga.Parameter(layer.W.array.copy())
        layer.W.update_rule = rule
        model.layers[1].b.array = model.layers[1].b.array + 1
        return train(comm, model, optimizer, slice(2, STEPS))

    check_same(some_ranks, run)


@pytest.mark.parametrize("change", ["hook", "rule", "setup"])
def test_what_changes_between_updates(some_ranks, change):
    """A hook for whole parameters, another rule of a parameter, or all of them anew."""

    def run(comm, shard):
        model, optimizer = make(comm, shard=shard)
        train(comm, model, optimizer, slice(0, 2))
        W = model.layers[1].W
        if change == "hook":
            optimizer.add_hook(optimizer_hooks.GradientLARS())
        elif change == "rule":
            W.update_rule = renga.optimizers.Adam(0.01).create_update_rule()
        else:
            optimizer.setup(model)
        train(comm, model, optimizer, slice(1, STEPS))
        return parameters(model)

    check_same(some_ranks, run)


@pytest.mark.parametrize("shard", SHARDS)
def test_memory(ranks, shard):
    """States, and what is kept of gradients, have 1/P of the parameters' elements."""

    def run(comm):
        model, optimizer = make(comm, renga.optimizers.Adam, shard=shard)
        train(comm, model, optimizer)
        states = [param.update_rule.state or {} for param in model.params()]
        assert isinstance(optimizer._steps.reducers.bucketed, ScatterReducer)
        kept = sum(x.size for x in optimizer._steps.reducers.bucketed._flats)
        grads = [param.grad for param in model.params()]
        assert all(grad is None for grad in grads)
        return sum(x.size for s in states for x in s.values()), kept

    results = ranks(run)
    # Two moments of four layers of 25 weights and 5 biases; one cache line of slack.
    assert sum(states for states, _ in results) == 2 * 4 * 30
    share = 240 / len(results)
    for states, kept in results:
        # Arrays are padded to lines of 16 elements.
        assert states <= share + 2 * 4 * (7 + 11)
        assert (kept > 0) == (shard == "states")


def test_invalid_use(some_ranks):
    def run(comm):
        with pytest.raises(ValueError, match="expected shard to be None"):
            make(comm, shard="weights")
        with pytest.raises(ValueError, match="double buffering"):
            make(comm, shard="states", double_buffering=True)
        model, optimizer = make(comm, shard="states")
        model.layers[1].W.array = model.layers[0].W.array
        with pytest.raises(ValueError, match="tied"):
            optimizer.update(model, X[0], T[0])
        optimizer = create_multi_node_optimizer(renga.optimizers.SGD(), comm)
        with pytest.raises(RuntimeError, match=r"expected setup\(model\) before"):
            optimizer.update(model, X[0], T[0])

    some_ranks(run)


def test_ranks_that_shard_differently(some_ranks):
    def run(comm):
        model, optimizer = make(comm, shard="states" if comm.rank else None)
        with pytest.raises(ValueError, match="expected one shard on all ranks"):
            optimizer.update(model, X[0], T[0])

    some_ranks(run)


class LimitNorm:
    """A hook of the user that reads all gradients of the model."""

    name = "LimitNorm"

    def __call__(self, optimizer):
        params = list(optimizer.target.params())
        norm = sum(float((param.grad**2).sum()) for param in params) ** 0.5
        for param in params:
            param.grad *= min(1, 0.05 / norm)


class Recenter:
    """A hook of the user that reads all parameters of the model after an update."""

    name = "Recenter"
    timing = "post"

    def __call__(self, optimizer):
        params = list(optimizer.target.params())
        mean = sum(float(param.array.sum()) for param in params)
        for param in params:
            param.array[...] -= 0.01 * mean * param.update_rule.t


def scale_by_count(rule, param):
    """Reads the number of updates, also of parameters that other ranks update."""
    param.grad /= 1 + rule.t


scale_by_count.call_for_each_param = True


@pytest.mark.parametrize(
    "hook",
    [LimitNorm(), Recenter(), scale_by_count],
    ids=["norm", "mean", "count of updates"],
)
def test_hooks_of_the_user_see_the_whole_model(some_ranks, hook):
    def run(comm, shard):
        model, optimizer = make(comm, shard=shard)
        optimizer.add_hook(hook)
        optimizer.add_hook(optimizer_hooks.GradientClipping(1e3))
        return train(comm, model, optimizer)

    check_same(some_ranks, run)


@pytest.mark.parametrize("shard", ["states", "gradients"])
def test_arrays_that_the_program_refers_to_stay_and_others_move(some_ranks, shard):
    def run(comm):
        model, optimizer = make(comm, renga.optimizers.Adam, shard=shard)
        made_of_array = renga.Parameter(np.ones(3, "f"))
        with model.init_scope():
            model.scale = made_of_array
        held = model.layers[1].W.array
        optimizer.update(model, own_samples(comm, X[0]), own_samples(comm, T[0]))
        assert model.layers[1].W.array is held
        return model.layers[0].W.array.base, made_of_array.array.base

    for bases in some_ranks(run):
        assert all(base is not None for base in bases)


class Late:
    """A communicator whose collectives in the background happen when waited for."""

    def __init__(self, comm, log):
        self.comm, self.log = comm, log

    def reduce_scatter(self, x, op, out, wait):
        return self._later("mean", lambda: self.comm.reduce_scatter(x, op, out=out))

    def all_gather(self, x, out, wait):
        return self._later("gather", lambda: self.comm.all_gather(x, out=out))

    def _later(self, name, run):
        def act():
            self.log.append(name)
            return run()

        return Work(None, functools.cache(act))


@pytest.fixture
def late(monkeypatch):
    """Makes buckets small and late; gives what happens, by the communicator's rank."""
    logs = collections.defaultdict(list)
    lane, apply = ShardedStates.lane, _core.optimizers.apply
    this = threading.local()

    def late_lane(self, b):
        this.log = logs[self._comm.rank]
        return Late(lane(self, b), this.log)

    def noted(updates):
        this.log.append("update")
        apply(updates)

    monkeypatch.setattr(buckets, "BUCKET_BYTES", 160)
    monkeypatch.setattr(ShardedStates, "lane", late_lane)
    monkeypatch.setattr(_core.optimizers, "apply", noted)
    return logs


@pytest.mark.parametrize("shard", ["states", "gradients"])
@pytest.mark.parametrize("kind", [renga.optimizers.Adam, renga.optimizers.LAMB])
def test_parameters_are_awaited_where_they_are_read(some_ranks, late, shard, kind):
    def run(comm, shard):
        comm = on_nodes(comm)
        model, optimizer = make(comm, kind, shard=shard)
        train(comm, model, optimizer, steps=[0, 1])
        # Arrays, slices and Variables that see updates as of any parameter.
        held = model.layers[0].W.array[1:], F.reshape(model.layers[2].W, (-1,))
        late[comm.rank].clear()
        train_only(comm, model, optimizer, 2)
        row, flat = held[0].copy(), held[1].array.copy()
        before = late[comm.rank].count("gather")
        found = parameters(model)
        gathers = late[comm.rank].count("gather")
        return {**found, "row": row, "flat": flat}, before, gathers

    for (expected, *_), (found, before, gathers) in zip(
        some_ranks(run, None), some_ranks(run, shard)
    ):
        for name, value in expected.items():
            np.testing.assert_array_equal(found[name], value, err_msg=name)
        assert before < gathers or kind is renga.optimizers.LAMB


@pytest.mark.parametrize("clips", [False, True])
def test_a_bucket_is_updated_when_its_means_arrive(some_ranks, late, clips):
    def run(comm):
        comm = on_nodes(comm)
        model, optimizer = make(comm, renga.optimizers.Adam, shard="states")
        if clips:  # by the norm of all means
            optimizer.add_hook(optimizer_hooks.GradientClipping(1.0))
        train(comm, model, optimizer, steps=[0, 1])
        log = late[comm.rank]
        log.clear()
        train_only(comm, model, optimizer, 2)
        return [name for name in log if name != "gather"]

    for log in some_ranks(run):
        count = log.count("mean")
        assert count > 2
        assert log == (["mean"] if clips else ["mean", "update"]) * count
