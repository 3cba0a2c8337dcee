"""Writers of snapshots: contents, order and errors."""

import copy
import errno
import os
import threading

import numpy
import pytest

from renga import extensions, serializers
from renga.extensions.snapshots import snapshot_writers
from tests.extensions.snapshots.saved_weights import (
    Weights,
    filling,
    loaded,
    trainer_in,
)

WRITERS = [
    snapshot_writers.SimpleWriter,
    snapshot_writers.ThreadWriter,
    snapshot_writers.ProcessWriter,
    snapshot_writers.ThreadQueueWriter,
    snapshot_writers.ProcessQueueWriter,
]


@pytest.mark.parametrize("writer", WRITERS)
def test_writers(tmp_path, writer):
    weights = Weights(100_000)
    trainer_in(
        tmp_path,
        filling(weights),
        extensions.snapshot_object(
            weights, "w_{.updater.iteration}", writer=writer(), n_retains=2
        ),
    ).run()
    assert sorted(os.listdir(tmp_path)) == ["w_3", "w_4"]
    for i in (3, 4):
        with numpy.load(tmp_path / f"w_{i}") as archive:
            assert (archive["w"] == i).all()


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy])
@pytest.mark.parametrize("writer", WRITERS)
def test_copies_of_used_writers_are_independent(tmp_path, writer, duplicate):
    original = writer()
    original("a", str(tmp_path), {"w": 0 * Weights().w})
    copied = duplicate(original)
    original.finalize()
    copied("b", str(tmp_path), {"w": 0 * Weights().w + 1})
    copied.finalize()
    again = duplicate(copied)
    again("c", str(tmp_path), {"w": 0 * Weights().w + 2})
    again.finalize()
    assert [loaded(tmp_path / name) for name in "abc"] == [0, 1, 2]


def test_background_writer_saves_the_values_at_the_call(tmp_path):
    go = threading.Event()

    def slow(path, target):
        assert go.wait(10)
        serializers.save_npz(path, target)

    weights = Weights()
    writer = snapshot_writers.ThreadWriter(slow)
    writer("w", str(tmp_path), {"w": weights.w})
    weights.w += 7
    go.set()
    writer.finalize()
    assert loaded(tmp_path / "w") == 0


def fail(path, target):
    with open(path, "wb") as file:
        file.write(b"half")
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("writer", WRITERS)
def test_writers_raise_the_error(tmp_path, writer):
    path = tmp_path / "w"
    serializers.save_npz(path, Weights())
    failing = writer(fail)
    with pytest.raises(OSError, match="could not write .*No space left") as caught:
        failing("w", str(tmp_path), {"w": numpy.ones(1000)})
        failing.finalize()
    failing.finalize()
    assert caught.value.errno == errno.ENOSPC
    assert loaded(path) == 0
    assert os.listdir(tmp_path) == ["w"]


class Full(Exception):
    def __init__(self, disk, *, size):
        super().__init__(f"{disk} of {size} bytes")


def fill(path, target):
    if "deadly" in target:
        os._exit(7)
    error = Full("disk", size=100)
    error.reports = bytes(100_000)  # more than a pipe holds
    raise error


PROCESS_WRITERS = [
    snapshot_writers.ProcessWriter,
    snapshot_writers.ProcessQueueWriter,
]


@pytest.mark.parametrize("writer", PROCESS_WRITERS)
def test_exceptions_and_deaths_of_processes(tmp_path, writer):
    failing = writer(fill)
    failing("w", str(tmp_path), {})
    with pytest.raises(Full, match="disk of 100 bytes") as caught:
        failing.finalize()
    assert "raise error" in str(caught.value.__cause__)
    dying = writer(fill)
    dying("w", str(tmp_path), {"deadly": 1})
    with pytest.raises(RuntimeError, match="not written, because its process died"):
        dying.finalize()
    dying.finalize()


def test_a_task_that_cannot_be_pickled_is_not_written(tmp_path, capfd):
    writer = snapshot_writers.ProcessQueueWriter(lambda path, target: None)
    writer("w", str(tmp_path), {})
    with pytest.raises(RuntimeError, match="not written"):
        writer.finalize()
    assert "pickle" in capfd.readouterr().err


def test_arguments_of_savefun(tmp_path):
    writer = snapshot_writers.SimpleWriter(serializers.save_npz, compression=False)
    trainer_in(
        tmp_path, extensions.snapshot_object(Weights(), "plain", writer=writer)
    ).run()
    trainer_in(tmp_path, extensions.snapshot_object(Weights(), "packed")).run()
    plain, packed = ((tmp_path / n).stat().st_size for n in ("plain", "packed"))
    assert plain > 8000 > packed
