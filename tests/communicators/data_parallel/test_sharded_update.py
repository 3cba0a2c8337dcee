"""Sharded updates, on plain arrays."""

import numpy as np
import pytest

from renga import _core
from renga.communicators import local
from renga.communicators.data_parallel import sharded_update
from renga.utils.type_check import InvalidType

# Less than a line of the cache, several lines, several blocks.
SIZES = [1, 3, 17, 1000, 70_001, (3, 5), (0,), ()]


def arrays(rank, dtype):
    random = np.random.RandomState(rank)
    return [random.uniform(-1, 1, n).astype(dtype) for n in SIZES]


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_partitions_are_updated_by_the_mean_gradient(ranks, dtype):
    def act(comm):
        xs = comm.copy_to_window([np.asarray(x) for x in arrays(100, dtype)])
        vs = comm.copy_to_window([np.asarray(v) for v in arrays(101, dtype)])
        gs = comm.copy_to_window([np.asarray(g) for g in arrays(comm.rank, dtype)])

        def update():
            for x, g, v in zip(xs, gs, vs):
                _core.optimizers.momentum_sgd(
                    x, (g, 0.5, 0.25), {"v": v}, {"lr": 0.5, "momentum": 0.75}
                )

        sharded_update(comm, _core.optimizers.deferred_updates(update))
        return xs, gs, vs

    atol = {"float64": 1e-15, "float32": 1e-6, "float16": 4e-3}[dtype]
    given = [arrays(r, dtype) for r in range(ranks)]
    for xs, gs, vs in local.run(act, ranks=ranks):
        for i, (x0, v0) in enumerate(zip(arrays(100, dtype), arrays(101, dtype))):
            x0, v0 = np.asarray(x0, "float64"), np.asarray(v0, "float64")
            mean = np.mean([np.asarray(of[i], "float64") for of in given], 0)
            g = 0.5 * mean + 0.25 * x0
            v = 0.75 * v0 - 0.5 * g
            for actual, expected in ((gs[i], g), (vs[i], v), (xs[i], x0 + v)):
                assert actual.dtype == dtype
                np.testing.assert_allclose(actual, expected, rtol=0, atol=atol)


def test_window_copies_are_row_major():
    def act(comm):
        x = np.asfortranarray(np.arange(6.0).reshape(2, 3))
        y, z = comm.copy_to_window([x, x])
        y[0, 0] = 7
        assert comm.window_layout([y, x]) == 0 and comm.window_layout(
            [y]
        ) != comm.window_layout([z])
        return x, y, comm.window_layout([y, z])

    seen = local.run(act, ranks=2)
    assert seen[0][2] == seen[1][2] != 0
    for x, y, _ in seen:
        np.testing.assert_array_equal(y, [[7, 1, 2], [3, 4, 5]])
        assert x[0, 0] == 0 and y.flags.c_contiguous


@pytest.mark.parametrize("options", [{"shared_memory": False}, {"nodes": 2}])
def test_no_window_copies_without_shared_memory(options):
    def act(comm):
        return comm.copy_to_window([np.zeros(3, "float32")])

    assert local.run(act, ranks=2, **options) == [[], []]


def test_arrays_outside_windows_are_refused():
    def act(comm):
        x, g = np.zeros(3, "float32"), np.zeros(3, "float32")
        updates = _core.optimizers.deferred_updates(
            lambda: _core.optimizers.sgd(x, g, {}, {"lr": 0.5})
        )
        with pytest.raises(ValueError, match="update: expected arrays in windows"):
            sharded_update(comm, updates)
        np.testing.assert_array_equal(x, 0)

    local.run(act, ranks=2)


def test_different_updates_raise_on_all_ranks():
    def act(comm):
        xs = comm.copy_to_window([np.zeros(3, "float32") for _ in range(4)])
        pairs = [xs[:2], xs[2:]]
        if comm.rank == 1:
            pairs.reverse()

        def update():
            for x, g in pairs:
                _core.optimizers.sgd(x, g, {}, {"lr": 0.5})

        with pytest.raises(InvalidType, match="expected the same call on every rank"):
            sharded_update(comm, _core.optimizers.deferred_updates(update))

    local.run(act, ranks=2)


def test_deferred_updates_are_not_applied():
    x, g = np.ones(3, "float32"), np.ones(3, "float32")
    updates = _core.optimizers.deferred_updates(
        lambda: _core.optimizers.sgd(x, g, {}, {"lr": 0.5})
    )
    assert len(updates) == 1
    np.testing.assert_array_equal(x, 1)
    _core.optimizers.sgd(x, g, {}, {"lr": 0.5})
    np.testing.assert_array_equal(x, 0.5)


def test_updates_are_not_deferred_after_an_error():
    x, g = np.ones(3, "float32"), np.ones(3, "float32")

    def update():
        raise KeyError("in vain")

    with pytest.raises(KeyError, match="in vain"):
        _core.optimizers.deferred_updates(update)
    _core.optimizers.sgd(x, g, {}, {"lr": 0.5})
    np.testing.assert_array_equal(x, 0.5)
