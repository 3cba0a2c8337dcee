"""What nodes keep of gradients, where training goes on with other numbers of ranks."""

import json
import types

import numpy as np
import pytest

import renga
import renga.functions as F
import renga.links as L
from renga.communicators import local
from renga.distributed import (
    compression,
    create_multi_node_checkpointer,
    create_multi_node_optimizer,
    elastic,
)
from renga.distributed.extensions import multi_node_snapshot
from renga.serializers import DictionarySerializer
from renga.training import extensions

RATE = 0.5
SUMS = {"residual", "velocity"}  # over the ranks of a node


def elastic_checkpoints(comm, optimizer, folder, saves):
    checkpoints = elastic.Checkpoints(comm, folder)
    if saves:
        checkpoints.save(optimizer, 1)
        checkpoints.finalize()
    else:
        assert checkpoints.load(optimizer) == 1


def checkpointer(comm, optimizer, folder, saves):
    extension = create_multi_node_checkpointer("cp", comm, path=folder)
    extension.save(optimizer, 1) if saves else extension.maybe_load(optimizer)


def snapshot(comm, optimizer, folder, saves):
    own = extensions.snapshot_object(optimizer, "s", autoload=True)
    extension = multi_node_snapshot(comm, own, [range(comm.size)])
    trainer = types.SimpleNamespace(out=folder)
    extension(trainer) if saves else extension.initialize(trainer)


COMPRESSORS = {
    "TopK": lambda: compression.TopK(0.2),
    "RandomK": lambda: compression.RandomK(0.2),
    "OneBit": compression.OneBit,
    "PowerSGD": lambda: compression.PowerSGD(1),
    "Auto": compression.Auto,
    "DGC": lambda: compression.DGC(0.2),
    "Cast": compression.Cast,
    "QSGD": compression.QSGD,
    "TernGrad": compression.TernGrad,
}
CASES = [
    *((way, "TopK", 4, 4) for way in (elastic_checkpoints, checkpointer, snapshot)),
    *((way, "TopK", 4, 2) for way in (elastic_checkpoints, checkpointer, snapshot)),
    *((way, "TopK", 2, 3) for way in (elastic_checkpoints, checkpointer, snapshot)),
    *((elastic_checkpoints, name, 4, 6) for name in COMPRESSORS),
]


@pytest.mark.parametrize("way, name, before, after", CASES)
def test_what_a_node_keeps_stays_there(tmp_path, way, name, before, after):
    """On two nodes: it is saved, loaded, and added to the next gradients."""
    W = np.random.RandomState(9).normal(size=(8, 9)).astype("f")

    def make(comm):
        model = L.Linear(9, 8, initialW=W, nobias=True)
        optimizer = create_multi_node_optimizer(
            renga.optimizers.SGD(RATE), comm, compression=COMPRESSORS[name]()
        )
        return model, optimizer.setup(model)

    def step(comm, model, optimizer):
        x = np.random.RandomState([optimizer.t, comm.rank]).normal(size=(3, 9))
        t = np.random.RandomState(comm.rank).normal(size=(3, 8))
        w = model.W.array.copy()
        optimizer.update(lambda x, t: F.sum(model(x) * t), *map(np.float32, (x, t)))
        return t.T @ x, (w - model.W.array) / RATE * comm.size

    def save(comm):
        model, optimizer = make(comm)
        for _ in range(3):
            step(comm, model, optimizer)
        way(comm, optimizer, str(tmp_path), saves=True)
        return kept_by(optimizer)

    def load(comm):
        model, optimizer = make(comm)
        way(comm, optimizer, str(tmp_path), saves=False)
        loaded = kept_by(optimizer)
        came, sent = step(comm, model, optimizer)
        return loaded, came, sent, kept_by(optimizer)

    saved = [kept for kept in local.run(save, ranks=before, nodes=2) if kept]
    results = local.run(load, ranks=after, nodes=2)
    loaded = [kept for kept, *_ in results if kept]
    assert len(loaded) == len(saved) == 2
    for own, expected in zip(loaded, saved):
        assert own.keys() == expected.keys()
        for key, value in expected.items():
            scale = after / before if key in SUMS else 1
            np.testing.assert_allclose(own[key], value * scale, rtol=1e-6)
    if name in ("TopK", "RandomK", "OneBit", "PowerSGD"):
        came = sum(came for _, came, _, _ in results)
        sent = results[0][2]
        kept = sum(own["residual"] for own in loaded)
        left = sum(own["residual"] for *_, own in results if own)
        np.testing.assert_allclose(sent + left, kept + came, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("nodes", [2, 4])
def test_what_all_nodes_have_goes_on_with_other_numbers_of_them(tmp_path, nodes):
    """As the number of the step, which the warm-up of DGC depends on."""

    def make(comm):
        optimizer = create_multi_node_optimizer(
            renga.optimizers.SGD(RATE), comm, compression=compression.DGC(0.2)
        )
        model = L.Linear(9, 8, nobias=True)
        return model, optimizer.setup(model)

    def act(comm, loads):
        model, optimizer = make(comm)
        if loads:
            elastic_checkpoints(comm, optimizer, str(tmp_path), saves=False)
        x = np.ones((2, 9), "f")
        for _ in range(3):
            optimizer.update(lambda x: F.sum(model(x)), x)
        if not loads:
            elastic_checkpoints(comm, optimizer, str(tmp_path), saves=True)
        return kept_by(optimizer)

    local.run(act, False, ranks=6, nodes=3)
    found = [kept for kept in local.run(act, True, ranks=nodes, nodes=nodes) if kept]
    assert [kept["step"] for kept in found] == [6] * nodes


def kept_by(optimizer):
    """What its rank keeps of the only parameter, by name."""
    saved = DictionarySerializer()
    saved.save(optimizer)
    arrays = saved.target
    keys = arrays.get("bucket_hook/keys", np.zeros(0, np.uint8)).tobytes()
    names = [key for _, key in json.loads(keys or "[]")]
    return {k: arrays[f"bucket_hook/state_{i}"].copy() for i, k in enumerate(names)}
