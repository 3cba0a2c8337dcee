"""Parameters that ranks without shared memory gather for use and free after."""

import contextlib
import gc
import threading
import time

import numpy as np
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga import _core
from renga.communicators import RankFailed, local
from renga.distributed import create_groups, create_multi_node_optimizer
from renga.parallel.data import buckets
from renga.parallel.data.sharded_parameters.row_service import RowService
from renga.pipeline import Pipeline
from renga.variable import Variable
from tests.parallel.data.sharded_programs import T, X, make, train, values

LAYERS, WIDTH = 6, 64
LAYER_BYTES = 4 * WIDTH * WIDTH


@pytest.fixture(autouse=True)
def a_unit_for_each_layer(monkeypatch):
    monkeypatch.setattr(buckets, "BUCKET_BYTES", LAYER_BYTES // 2)
    monkeypatch.setenv("RENGA_TIMEOUT", "20")


class Layers(renga.ChainList):
    def __init__(self):
        random = np.random.RandomState(0)
        shape = (LAYERS, WIDTH, WIDTH)
        weights = random.normal(0, WIDTH**-0.5, shape).astype("float32")
        super().__init__(*(L.Linear(WIDTH, initialW=weight) for weight in weights))

    def forward(self, x):
        for link in self:
            x = F.relu(link(x))
        return x

    def loss(self, x):
        return F.mean(self(x) ** 2)


def start(comm, rule=renga.optimizers.MomentumSGD):
    model = Layers()
    optimizer = rule(0.1).setup(model)
    if comm is not None:
        optimizer = create_multi_node_optimizer(optimizer, comm, shard="parameters")
    x = np.ones((2, WIDTH), "float32")
    optimizer.update(model.loss, x)
    return model, optimizer, x


def test_a_loss_of_before_the_parameters_were_divided_is_refused():
    """Later ones may be computed before update, as for truncated backpropagation."""

    def rank(comm):
        model = Layers()
        optimizer = create_multi_node_optimizer(
            renga.optimizers.MomentumSGD(0.1), comm, shard="parameters"
        ).setup(model)
        x = np.ones((2, WIDTH), "float32")
        early = model.loss(x)
        with pytest.raises(RuntimeError, match="first update.*computed earlier"):
            optimizer.update(lambda: early, samples=2)
        optimizer.update(model.loss, x)
        loss = model.loss(x)
        optimizer.update(lambda: loss, samples=2)
        return float(model.loss(x).array)

    model, optimizer, x = start(None)
    optimizer.update(model.loss, x)
    for found in on_messages(rank):
        assert found == pytest.approx(float(model.loss(x).array), rel=1e-5)


def on_messages(function, ranks=2):
    return local.run(function, ranks=ranks, shared_memory=False)


def has_memory(param):
    """Whether more than one element of a weight is in memory now."""
    x = vars(Variable)["array"].__get__(param)
    return x.strides != (0,) * x.ndim


@contextlib.contextmanager
def fetches(monkeypatch):
    """The numbers of the rows that rank 0 asks for."""
    found, fetch = [], RowService.fetch

    def noted(service, number, rows):
        if service._comm.rank == 0:
            found.append(number)
        return fetch(service, number, rows)

    with monkeypatch.context() as context:
        context.setattr(RowService, "fetch", noted)
        yield found


def test_a_layer_is_gathered_once_forward_and_once_backward(monkeypatch):
    def run(comm):
        model, optimizer, x = start(comm)
        optimizer.update(model.loss, x)
        with fetches(monkeypatch) if comm.rank == 0 else contextlib.nullcontext() as f:
            comm.barrier()
            optimizer.update(model.loss, x)
            comm.barrier()
            return f

    asked, _ = on_messages(run)
    forward, backward = asked[:LAYERS], asked[LAYERS:]
    assert len(set(forward)) == LAYERS
    # The last two are still there when the backward pass begins.
    assert backward == [n for n in forward[::-1] if n in backward]
    assert LAYERS - 2 <= len(backward) < LAYERS


def test_few_layers_are_in_memory_at_once():
    most = {}

    def run(comm):
        model, optimizer, x = start(comm)
        weights = [link.W for link in model]

        def count(*_):
            here = sum(map(has_memory, weights))
            most[comm.rank] = max(most.get(comm.rank, 0), here)

        class Count(renga.LinkHook):
            forward_postprocess = count

        hook = _core.add_gradient_ready_hook(count)
        with Count():
            optimizer.update(model.loss, x)
        _core.remove_gradient_ready_hook(hook)
        return [has_memory(weight) for weight in weights]

    assert on_messages(run) == [[False] * LAYERS] * 2
    assert all(0 < count <= 3 for count in most.values())


def test_arrays_are_freed_but_those_that_the_program_holds():
    def run(comm):
        held, shape = np.full((WIDTH, WIDTH), 0.5, "float32"), (WIDTH, WIDTH)
        model = renga.Chain()
        with model.init_scope():
            model.number = renga.Parameter(0.5, shape)
            model.array = renga.Parameter(np.full(shape, 0.5, "float32"))
            model.held = renga.Parameter(held)
        optimizer = create_multi_node_optimizer(
            renga.optimizers.SGD(0.25).setup(model), comm, shard="parameters"
        )
        optimizer.update(lambda: sum(F.sum(x) for x in model.params()), samples=1)
        return {x.name: has_memory(x) for x in model.params()}, held

    for found, held in on_messages(run):
        assert found == {"number": False, "array": False, "held": True}
        np.testing.assert_array_equal(held, 0.25)


def test_a_rank_keeps_its_rows():
    def run(comm):
        model, optimizer, x = start(comm, renga.optimizers.Adam)
        units = optimizer._steps.reducers.sharding._states._units
        states = [p.update_rule.state or {} for p in model.params()]
        kept = sum(x.size for state in states for x in state.values())
        return sum(unit.row.size for unit in units), kept

    elements = LAYERS * WIDTH * (WIDTH + 1)
    for ranks in (2, 3):
        found = on_messages(run, ranks)
        assert sum(states for _, states in found) == 2 * elements
        for rows, _ in found:  # rows end at cache lines
            assert elements / ranks <= rows <= elements / ranks + 16 * LAYERS


def test_equals_one_process_and_reads_alone():
    """A rank computes, reads and differentiates while another one waits."""

    def run(comm):
        model, optimizer, x = start(comm)
        optimizer.update(model.loss, x)
        found = None
        if comm is None or comm.rank == 1:
            y = model.loss(x)
            model.cleargrads()
            y.backward()
            grads = [p.grad for p in model.params()]
            with renga.no_backprop_mode():
                found = [
                    y.array,
                    model(x).array,
                    *grads,
                    *map(np.array, values_of(model)),
                ]
            model.cleargrads()
        if comm is not None:
            comm.barrier()
        optimizer.update(model.loss, x)
        return found, [np.array(x) for x in values_of(model)]

    def values_of(model):
        return [param.array for param in model.params()]

    (alone, after), expected = on_messages(run)[1], run(None)
    for got, wanted in zip([*alone, *after], [*expected[0], *expected[1]]):
        np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-6)


def test_inference_frees_what_it_has_read():
    def run(comm):
        model, _, x = start(comm)
        with renga.no_backprop_mode():
            model(x)
        return sum(has_memory(link.W) for link in model)

    assert all(count <= 3 for count in on_messages(run))


def test_other_models_gather_nothing(monkeypatch):
    def run(comm):
        _, _, x = start(comm)
        with fetches(monkeypatch) if comm.rank == 0 else contextlib.nullcontext() as f:
            comm.barrier()
            Layers()(x)
            comm.barrier()
            return f

    assert on_messages(run)[0] == []


def test_threads_end_with_the_model():
    def run(comm):
        start(comm)

    on_messages(run, 3)
    gc.collect()
    end = time.monotonic() + 10
    while threads_of_rows() and time.monotonic() < end:
        time.sleep(0.01)
    assert threads_of_rows() == []


def threads_of_rows():
    return [thread for thread in threading.enumerate() if thread.name == "rows"]


def test_the_model_outlives_its_optimizer_and_the_other_rank():
    expected = values(train_serially())

    def run(comm):
        model, optimizer = make(comm)
        train(comm, model, optimizer, steps=[0, 1])
        if comm.rank == 1:
            return None
        del optimizer
        gc.collect()
        time.sleep(0.1)  # the other rank has returned
        return values(model)

    found, _ = on_messages(run)
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=0, atol=1e-9)


def train_serially():
    model, optimizer = make(None)
    train(None, model, optimizer, steps=[0, 1])
    return model


def test_a_rank_that_fails_ends_the_others():
    def run(comm):
        model, optimizer = make(comm)
        train(comm, model, optimizer, steps=[0])
        if comm.rank == 1:
            raise ArithmeticError("no row")
        with pytest.raises(RankFailed):
            for _ in range(1000):
                model.loss(X[0], T[0])
                time.sleep(0.01)

    with pytest.raises(ArithmeticError, match="no row"):
        on_messages(run)


def test_hooks_for_whole_parameters_keep_them():
    def run(comm):
        model, optimizer, x = start(comm)
        optimizer.add_hook(renga.optimizer_hooks.GradientLARS())
        optimizer.update(model.loss, x)
        return [has_memory(link.W) for link in model]

    assert on_messages(run) == [[True] * LAYERS] * 2


class Squares(Layers):
    def forward(self, x):
        return F.mean(super().forward(x) ** 2)


def test_stages_of_a_pipeline_keep_their_parameters():
    x = np.ones((2, WIDTH), "float32")

    def run(comm):
        model = Squares()
        optimizer = renga.optimizers.SGD(0.1)
        if comm is not None:
            groups = create_groups(comm, stage=2)
            model = Pipeline(model, groups.stage, x, micro_batches=1)
            optimizer = create_multi_node_optimizer(
                optimizer, groups.data, shard="parameters"
            )
        optimizer.setup(model)
        for _ in range(3):
            if comm is None:
                optimizer.update(model, x)
            else:
                model.train_batch(optimizer, model.model, (x,))
        of_all = contextlib.nullcontext()
        if comm is not None:
            of_all = model.gathered_parameters(optimizer)
        with of_all:
            return {name: np.array(p.array) for name, p in model.namedparams()}

    expected = run(None)
    for found in on_messages(run, 4):
        for name, value in found.items():
            np.testing.assert_allclose(value, expected[name], rtol=0, atol=1e-6)


def test_a_pipeline_whose_program_reads_gathered_parameters_of_another_model():
    """The other model is trained in turns, by an optimizer of its own."""

    class Features(renga.Chain):
        def __init__(self, encoder):
            super().__init__()
            self.encode = lambda x: F.tanh(encoder(x))  # not a child
            draw = np.random.RandomState(1).normal
            with self.init_scope():
                self.first = L.Linear(WIDTH, 9, initialW=draw(0, 0.1, (9, WIDTH)))
                self.last = L.Linear(9, 2, initialW=draw(0, 0.1, (2, 9)))

        def forward(self, x):
            y = self.last(F.tanh(self.first(self.encode(x))))
            return F.mean(y**2)

    x = np.linspace(-1, 1, 4 * WIDTH).reshape(4, WIDTH).astype("float32")

    def run(comm):
        model, optimizer, _ = start(comm)
        reader = Features(model)
        own = renga.optimizers.SGD(0.1)
        if comm is not None:
            reader = Pipeline(reader, comm, x, micro_batches=1)
        own.setup(reader)
        losses = []
        for _ in range(3):
            if comm is None:
                own.update(reader, x)
            else:
                reader.train_batch(own, reader.model, (x,))
            optimizer.update(model.loss, x if comm is None else x[comm.rank :: 2])
            losses.append(float(model.loss(x).array))
        of_all = contextlib.nullcontext()
        if comm is not None:
            of_all = reader.gathered_parameters(own)
        with of_all:
            return losses, {n: np.array(p.array) for n, p in reader.namedparams()}

    losses, expected = run(None)
    for found_losses, found in on_messages(run):
        np.testing.assert_allclose(found_losses, losses, rtol=1e-4)
        assert found.keys() == expected.keys()
        for name, value in found.items():
            np.testing.assert_allclose(value, expected[name], rtol=0, atol=1e-5)
