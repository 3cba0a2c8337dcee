"""Plans of models: what they compute, and what they say that they send."""

import numpy as np
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga import planning
from renga.communicators import local, simulated
from renga.distributed import parallelize
from renga.parallel.plan.costs import Costs, Device
from renga.parallel.plan.plan import Plan, Stages
from renga.parallel.plan.strategies.messages import link_messages
from renga.parallel.plan.strategies.spatial import spatial_split, spatial_steps
from renga.parallel.plan.strategies.stages import stage_steps
from renga.parallel.plan.strategies.traced_model import SERIAL, TracedModel
from tests.parallel.plan.planned_models import (
    CASES,
    DEVICE,
    Residual,
    Words,
    bytes_of_check,
    check_equal,
    check_plans,
    images,
    plan_of,
    space_of,
    strategies,
    train,
    words,
)


def predicted_bytes(space, rank):
    total = 8 * (space.cluster.ranks - 1)  # the ranks compare their arguments
    for traced in space.traced.calls:
        algorithm, layouts = space.algorithm(traced), space.layouts(traced.call)
        if algorithm != SERIAL:
            link, call = traced.call.link, traced.call
            total += link_messages(
                link, call, layouts, algorithm, space.cluster, rank
            ).bytes
    return total


@pytest.mark.parametrize("case", CASES)
def test_a_plan_computes_what_the_serial_model_computes(case, some_ranks):
    make, example = CASES[case]
    check_plans(some_ranks, make, example())


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("size", [3, 6])
def test_a_plan_sends_the_bytes_that_it_predicts(case, size):
    make, example = CASES[case]
    x, model = example(), make()
    for space in strategies(model, x, size):
        predicted = [predicted_bytes(space, rank) for rank in range(size)]
        plan = plan_of(space)

        def act(comm, plan=plan):
            parallel = parallelize(model, comm, plan, x)
            parallel(x)  # compared with the serial model
            parallel.cleargrads()
            before = comm.traffic.bytes
            F.mean(parallel(x) ** 2).backward()
            return comm.traffic.bytes - before

        sent = simulated.run(act, size).results
        assert sent == predicted, plan.links
        assert predicted[0] == sum(times.messages.bytes for times in space.step.times)


GRIDS = [(1, 1), (2, 1), (1, 2), (1, 3), (2, 2), (4, 1)]


@pytest.mark.parametrize(
    ("extents", "grid", "degrees"),
    [
        ((9, 1, 6, 5), (2, 3), (1, 1, 2, 3)),  # samples, channels, rows and columns
        ((9, 8, 1, 5), (2, 3), (1, 1, 1, 3)),
        ((9, 8, 6, 2), (2, 3), (1, 1, 2, 2)),
        ((9, 8), (2, 3), (1, 1)),
    ],
)
def test_an_axis_is_split_into_as_many_parts_as_it_has_at_most(extents, grid, degrees):
    assert spatial_split(extents, grid).degrees == degrees


def spatial_plan(grid):
    ranks = grid[0] * grid[1]
    cluster = planning.Cluster(ranks, simulated.Machine(intra_size=ranks), False)
    return Plan("test", cluster, 0.0, 0.0, [], {}, grid=grid)


@pytest.mark.parametrize("grid", GRIDS)
def test_a_spatial_plan_computes_what_the_serial_model_computes(grid):
    x = images()
    expected = train(Residual(), x)

    def act(comm):
        return train(parallelize(Residual(), comm, spatial_plan(grid), x), x)

    for found in local.run(act, ranks=grid[0] * grid[1]):
        check_equal(found, expected)


@pytest.mark.parametrize("size", [2, 3, 4])
def test_a_spatial_plan_sends_the_bytes_that_it_predicts(size):
    model, x = Residual(), images()
    space = space_of(model, x, size)
    steps = spatial_steps(space.traced, space.cluster, Costs(DEVICE))
    grids = [(size, 1)] if size < 4 else [(4, 1), (2, 2)]
    assert [step.grid for step in steps] == grids
    for step in steps:
        plan = spatial_plan(step.grid)

        def act(comm, plan=plan):
            parallel = parallelize(model, comm, plan, x)
            parallel(x)  # compared with the serial model
            before = comm.traffic.bytes
            y = parallel(x)
            y.grad = np.ones_like(y.array)
            y.backward()
            return comm.traffic.bytes - before

        sent = simulated.run(act, size).results
        assert sent[0] == step.bytes_sent + bytes_of_check(size) > 0


def test_large_images_of_few_samples_are_shared_out():
    # Two samples for four ranks; replicated filters are few. Messages are cheap, so
    # a step is shortest where all ranks share the products.
    x = np.random.RandomState(0).normal(size=(2, 3, 32, 32)).astype(np.float32)
    links = [L.Convolution2D(3, 3, 3, pad=1) for _ in range(2)]
    model = renga.Sequential(*links)
    machine = simulated.Machine(4, node_latency=1e-7, node_bandwidth=1e11)
    cluster = planning.Cluster(4, machine, False)
    plan = planning.search(model, x, cluster, Costs(DEVICE), seed=0, proposals=50)
    assert plan.grid in ((2, 2), (4, 1))
    rows, columns = plan.grid
    assert f"rows {rows}, columns {columns}" in plan.table()
    assert plan.seconds < plan.data_seconds


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("size", [1, 2, 4])
def test_the_rows_of_a_plan_add_up_to_its_step(case, size):
    """A rank computes and waits, one after the other."""
    make, example = CASES[case]
    # Of a slow machine: the simulator gives even what takes no time a nanosecond.
    machine = simulated.Machine(size, node_latency=1e-3, node_bandwidth=1e5)
    cluster = planning.Cluster(size, machine, False)
    costs = Costs(Device(1e5, 1e5))
    plan = planning.search(make(), example(), cluster, costs, seed=0, proposals=40)
    assert plan.stages is None
    total = sum(row.computed + row.waited for row in plan.rows)
    assert total == pytest.approx(plan.seconds, rel=1e-5)


def test_a_plan_is_for_its_model_and_number_of_ranks():
    model, x = Words(), words()
    plan = plan_of(space_of(model, x, 2))
    three = simulated.connect(3)
    with pytest.raises(ValueError, match="expected a plan for 3 ranks, got one for 2"):
        parallelize(model, three, plan, x)
    with pytest.raises(ValueError, match="without /embed"):
        parallelize(Residual(), simulated.connect(2), plan, images())
    plan.links = None
    with pytest.raises(ValueError, match="expected a plan of a model"):
        parallelize(model, simulated.connect(2), plan, x)


def test_all_ranks_find_the_same_plan_and_the_fastest_timed_one(some_ranks):
    x = words()

    def act(comm):
        model = Words()
        cluster = planning.Cluster.of(comm)
        costs = planning.measure(model, x, comm)
        plan = planning.search(model, x, cluster, costs, seed=3, proposals=60)
        return plan.links, plan.measured, plan.seconds, plan.data_seconds

    found = some_ranks(act)
    assert all(other == found[0] for other in found)
    _, measured, seconds, data_seconds = found[0]
    assert seconds <= data_seconds or measured  # data parallelism may be the fastest
    if measured:
        assert {"data", "create_multi_node_optimizer"} < measured.keys()
        assert len(measured) <= 5


class Chain(renga.Sequential):
    """Linear layers: a pipeline computes the same for any number of micro-batches."""

    def __init__(self):
        sizes = [(6, 32), (32, 32), (32, 32), (32, 4)]
        super().__init__(*[f for n in sizes for f in (L.Linear(*n), F.tanh)])
        draw = np.random.RandomState(0)
        for _, param in sorted(self.namedparams()):
            param.array[...] = draw.normal(0, 0.3, param.shape)


def loss_of(model):
    return lambda x: F.mean(model(x) ** 2)


def test_a_plan_with_stages_trains_as_the_serial_model(ranks):
    x = np.random.RandomState(1).normal(size=(12, 6)).astype(np.float32)
    serial = Chain()
    optimizer = renga.optimizers.MomentumSGD(0.05).setup(serial)
    for _ in range(3):
        optimizer.update(loss_of(serial), x)

    def act(comm):
        size = comm.size
        machine = simulated.Machine(size)
        cluster = planning.Cluster(size, machine, False)
        traced = TracedModel(Chain(), (x,))
        steps = stage_steps(traced, cluster, Costs(DEVICE))
        stages = Stages(steps[0].starts, 4) if steps else None
        plan = Plan("test", cluster, 0.0, 0.0, [], {}, stages=stages)
        model = parallelize(Chain(), comm, plan, x)
        optimizer = renga.optimizers.MomentumSGD(0.05).setup(model)
        for _ in range(3):
            if size > 1:
                model.train_batch(optimizer, loss_of(model.model), (x,))
            else:
                optimizer.update(loss_of(model), x)
        found = {}
        renga.serializers.DictionarySerializer(found).save(model)
        return found

    expected = {}
    renga.serializers.DictionarySerializer(expected).save(serial)
    for found in ranks(act):
        check_equal(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("ranks", "starts", "messages"),
    # A Sequential names the links after its first one from the last one on.
    [(2, ("/2",), [1, 1]), (4, ("/3", "/2", "/1"), [1, 2, 2, 1])],
)
def test_a_search_for_pipelines_finds_one_where_little_can_be_sent(
    ranks, starts, messages
):
    # The products of a step take 0.25 s on one rank. Gradients take 4 · 4 · 256² / 3e5
    # = 3.5 s, the activations of all layers and their gradients 0.2 s, those of one
    # layer a quarter of that.
    model = renga.Sequential(*[L.Linear(256, 256) for _ in range(4)])
    x = np.zeros((16, 256), np.float32)
    machine = simulated.Machine(ranks, node_latency=1e-6, node_bandwidth=3e5)
    cluster = planning.Cluster(ranks, machine, False)
    costs = Costs(Device(1e8, 1e12))
    options = dict(seed=0, proposals=100)
    plan = planning.search(model, x, cluster, costs, **options, pipeline=True)
    assert plan.stages is not None and plan.stages.starts == starts
    # An activation to the next stage, and a gradient to the one before.
    assert [row.sent for row in plan.rows] == [n * x.nbytes for n in messages]
    assert plan.seconds < planning.search(model, x, cluster, costs, **options).seconds
    assert "stage on rank 1" in plan.table()


def test_stages_of_equal_micro_batches_wait_for_the_first_and_last_ones():
    # Four equal layers on two ranks, and messages that take no time: n micro-batches
    # take n + 1 times as long as one on a rank, forward and backward.
    x = np.zeros((8, 16), np.float32)
    model = renga.Sequential(*[L.Linear(16, 16) for _ in range(4)])
    machine = simulated.Machine(2, node_latency=1e-15, node_bandwidth=1e18)
    cluster = planning.Cluster(2, machine, False)
    traced = TracedModel(model, (x,))
    table = {
        op.signature: {"1x1r1": (8e-3, 16e-3), "8x1r1": (1e-3, 2e-3)}
        if op.kind == "linear"
        else {"1x1r1": (1e-12, 1e-12)}
        for op in traced.graph.operations
    }
    steps = stage_steps(traced, cluster, Costs(Device(1e12, 1e18), table))
    assert [step.micro_batches for step in steps] == [2, 4, 8]
    for step in steps:
        assert step.starts == ("/2",)
        own = 2 * (8e-3 + 16e-3) / step.micro_batches
        expected = (step.micro_batches + 1) * own
        assert step.seconds == pytest.approx(expected, rel=1e-3)
    normalized = renga.Sequential(L.Linear(16, 16), L.BatchNormalization(16))
    traced = TracedModel(normalized, (x,))
    assert not stage_steps(traced, cluster, Costs(DEVICE))
