import dataclasses
import io
import itertools
import json
import types

import numpy as np
import pytest

import renga
import renga.links as L
from renga import planning
from renga.communicators import local
from renga.parallel.plan import costs, device, layers
from renga.parallel.plan.configuration import Configuration
from renga.parallel.plan.graph import Graph

DEVICE = planning.Device(1e9, 1e8, 1e-3)


def linear():
    graph = Graph("one")
    x = layers.source(graph, "x", (16, 8))
    layers.linear(graph, "fc", x, 4)
    return graph.operations[1]


def split(samples, outputs=1, inputs=1):
    ranks = tuple(range(samples * outputs * inputs))
    return Configuration((samples, outputs), ranks, inputs)


def test_a_task_takes_the_longer_of_products_and_memory():
    op = linear()
    # 2 · 16 · 8 · 4 operations; 16 · 8 + 16 · 4 elements and 9 · 4 parameters.
    moved = 4 * (16 * 8 + 16 * 4 + 9 * 4)
    forward, backward = planning.Costs(DEVICE).task(op, split(1))
    assert forward == pytest.approx(1e-3 + max(1024 / 1e9, moved / 1e8))
    assert backward == 2 * forward
    # Half of the samples, all parameters; half of the outputs, all samples; terms of
    # all outputs by half of the inputs.
    for parts, moved in (
        (split(2), 8 * 8 + 8 * 4 + 9 * 4),
        (split(1, 2), 16 * 8 + 16 * 2 + 9 * 2),
        (split(1, 1, 2), 16 * 4 + 16 * 4 + 9 * 4 / 2),
    ):
        seconds, _ = planning.Costs(DEVICE).task(op, parts)
        assert seconds == pytest.approx(1e-3 + 4 * moved / 1e8)


def test_times_are_interpolated_as_powers_between_measured_sizes():
    op = linear()
    table = {op.signature: {"1x1r1": (8.0, 16.0), "4x1r1": (2.0, 1.0)}}
    costs = planning.Costs(DEVICE, table)
    assert costs.task(op, split(1)) == (8.0, 16.0)
    # Half is in the middle of 1 and 1 / 4 on a logarithmic scale.
    assert costs.task(op, split(2)) == pytest.approx((4.0, 4.0))
    assert costs.task(op, split(1, 2)) == pytest.approx((4.0, 4.0))
    # Beyond: a sixteenth is a quarter of a quarter.
    assert costs.task(op, split(16)) == pytest.approx((0.5, 0.25))


def test_measured_times_are_read_on_the_same_machine_only(tmp_path):
    path = tmp_path / "costs.json"
    table = {"linear 8->4": {"1x1r1": (1e-3, 2e-3)}}
    planning.Costs(DEVICE, table).save(path)
    loaded = planning.Costs.load(path)
    assert loaded.table == table and loaded.device == DEVICE
    content = json.loads(path.read_text())
    content["machine"] = "another one"
    path.write_text(json.dumps(content))
    with pytest.raises(ValueError, match="got another one"):
        planning.Costs.load(path)
    path.write_text("[1]")
    with pytest.raises(ValueError, match="expected .* in"):
        planning.Costs.load(path)
    path.write_text("{")
    with pytest.raises(ValueError, match="expected JSON"):
        planning.Costs.load(path)


def test_a_machine_is_known_by_its_first_processor(monkeypatch):
    text = "processor : 0\nmodel name\t: A 1: of 2\nmodel name\t: B\n"
    monkeypatch.setattr(costs, "open", lambda *a, **o: io.StringIO(text), raising=False)
    assert costs.machine_identity().startswith("A 1: of 2, ")


def test_an_update_takes_what_is_measured():
    # W, gW and a moment are read, W and the moment written.
    assert planning.Costs(DEVICE).update_bytes(400) == pytest.approx(5 * 400 / 1e8)
    device = dataclasses.replace(DEVICE, update=1e-9)
    assert planning.Costs(device).update_bytes(400) == pytest.approx(4e-7)


class Tokens(renga.Chain):
    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.f = L.Linear(3, 4)

    def forward(self, x):
        return self.f(x, n_batch_axes=2)


def test_a_device_computes_and_copies_as_much_as_it_did_in_a_second(monkeypatch):
    seconds = itertools.count()
    clock = types.SimpleNamespace(perf_counter=lambda: next(seconds))
    monkeypatch.setattr(device, "time", clock)
    monkeypatch.setattr(device.F, "matmul", lambda a, b: None)
    found, spread = local.run(device.measured_device, ranks=1)[0]
    assert (found.flops, found.bandwidth, spread) == (2 * 1024**3, 2 * 2**26, 0)


def test_products_of_tokens_are_measured_for_each_split():
    x = np.zeros((6, 5, 3), np.float32)
    tables = local.run(lambda comm: planning.measure(Tokens(), x, comm).table, ranks=2)
    assert tables[0]["linear /f ->30x4"].keys() == {"1x1r1", "2x1r1", "1x2r1", "1x1r2"}


def test_measuring_leaves_the_model_as_it_is(tmp_path):
    model = renga.Sequential(L.Linear(3, 4), L.BatchNormalization(4), L.Linear(4, 2))
    x = np.random.RandomState(0).normal(size=(6, 3)).astype(np.float32)
    before = {name: param.array.copy() for name, param in model.namedparams()}

    def act(comm):
        costs = planning.measure(model, x, comm, cache=tmp_path / "costs.json")
        return costs.table, costs.device

    (table, device), *others = local.run(act, ranks=2)
    assert all(other == (table, device) for other in others)
    assert device.update > 0
    # Two links and a normalization, and what is behind each.
    assert len(table) == 6
    assert all(min(times) >= 0 for op in table.values() for times in op.values())
    loaded = planning.Costs.load(tmp_path / "costs.json")
    assert (loaded.table, loaded.device) == (table, device)
    for name, param in model.namedparams():
        np.testing.assert_array_equal(param.array, before[name])
        assert np.isnan(param.grad).all()  # as they are initially
        assert param.update_rule is None
    np.testing.assert_array_equal(model[1].avg_mean, np.zeros(4))
