"""Snapshots: names, contents, conditions and limits."""

import os

import numpy
import pytest

from renga import extensions, serializers
from tests.extensions.snapshots.saved_weights import (
    Weights,
    filling,
    loaded,
    trainer_in,
)


def test_names_and_contents(tmp_path):
    weights = Weights()
    trainer_in(
        tmp_path,
        filling(weights),
        extensions.snapshot(),
        extensions.snapshot_object(weights, "w_{.updater.epoch}"),
        extensions.snapshot_object(weights, lambda t: f"f{t.updater.iteration}.npz"),
    ).run()
    expected = {f"{name}_{i}" for name in ("snapshot_iter", "w") for i in range(1, 5)}
    expected |= {f"f{i}.npz" for i in range(1, 5)}
    assert set(os.listdir(tmp_path)) == expected
    assert [loaded(tmp_path / f"w_{i}") for i in range(1, 5)] == [1, 2, 3, 4]
    with numpy.load(tmp_path / "snapshot_iter_3") as archive:
        assert archive["updater/iteration"] == 3
        assert archive["extension_triggers/_Snapshot/previous_iteration"] == 3


def test_hdf5(tmp_path):
    h5py = pytest.importorskip("h5py")
    trainer = trainer_in(tmp_path, extensions.snapshot(serializers.save_hdf5, "t.h5"))
    trainer.run()
    with h5py.File(tmp_path / "t.h5") as file:
        assert file["updater/iteration"][()] == 4
    resumed = trainer_in(tmp_path, extensions.snapshot())
    serializers.load_hdf5(tmp_path / "t.h5", resumed)
    assert resumed.updater.iteration == 4


def test_condition(tmp_path):
    answers = iter([False, True, False, True])
    snapshot = extensions.snapshot(condition=lambda: next(answers))
    trainer_in(tmp_path, snapshot).run()
    assert sorted(os.listdir(tmp_path)) == ["snapshot_iter_2", "snapshot_iter_4"]


@pytest.mark.parametrize("wanted", [True, False])
def test_on_error(tmp_path, wanted):
    def boom(trainer):
        if trainer.updater.iteration == 3:
            raise RuntimeError("boom")

    snapshot = extensions.snapshot(snapshot_on_error=wanted)
    trainer = trainer_in(tmp_path, boom)
    trainer.extend(snapshot, trigger=(2, "iteration"))
    with pytest.raises(RuntimeError, match="boom"):
        trainer.run(show_loop_exception_msg=False)
    names = ["snapshot_iter_2"] + ["snapshot_iter_3"] * wanted
    assert sorted(os.listdir(tmp_path)) == names


def test_n_retains_removes_only_the_oldest(tmp_path):
    others = ["snapshot", "snapshot_iter", "my_snapshot_iter_1", "log"]
    for name in others:
        (tmp_path / name).touch()
    trainer_in(tmp_path, extensions.snapshot(n_retains=3), iterations=12).run()
    kept = [f"snapshot_iter_{i}" for i in (10, 11, 12)]
    assert set(os.listdir(tmp_path)) == {*others, *kept}


@pytest.mark.parametrize(
    "kwargs, error",
    [
        ({"savefun": print, "writer": print}, TypeError),
        ({"autolod": True}, TypeError),
        ({"filename": str, "autoload": True}, ValueError),
        ({"filename": str, "n_retains": 1}, ValueError),
    ],
)
def test_refusals(kwargs, error):
    with pytest.raises(error):
        extensions.snapshot(**kwargs)
