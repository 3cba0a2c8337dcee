"""Snapshots when the disk is full or the process is killed."""

import contextlib
import errno
import os
import resource
import signal
import subprocess
import tempfile

import numpy
import pytest

from renga import extensions, serializers
from renga.extensions.snapshots import snapshot_writers
from renga.serializer import Deserializer
from renga.training import Extension
from tests.extensions.snapshots.saved_weights import trainer_in
from tests.scripts import run_program


class Growing(Extension):
    """State that outgrows a small disk at the third iteration."""

    state = numpy.zeros(100)

    def __call__(self, trainer):
        size = 100 if trainer.updater.iteration < 3 else 200_000
        self.state = numpy.random.RandomState(0).normal(size=size)

    def serialize(self, serializer):
        if self.state.size > 100 or not isinstance(serializer, Deserializer):
            serializer("state", self.state)


def mount_small_disk(path):
    """Whether a file system of 256 KiB was mounted, which needs permission."""
    command = ["mount", "-t", "tmpfs", "-o", "size=256k", "renga-test", path]
    return subprocess.run(command, stderr=subprocess.DEVNULL).returncode == 0


def can_mount():
    with tempfile.TemporaryDirectory() as path:
        mounted = mount_small_disk(path)
        if mounted:
            subprocess.run(["umount", path], check=True)
        return mounted


@contextlib.contextmanager
def small_disk(path):
    assert mount_small_disk(path)
    try:
        yield
    finally:
        subprocess.run(["umount", path], check=True)


@contextlib.contextmanager
def small_files(path):
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (256 * 1024, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


LIMITS = [(small_files, errno.EFBIG)]
LIMITS += [(small_disk, errno.ENOSPC)] if can_mount() else []


@pytest.mark.parametrize("writer", [None, snapshot_writers.ThreadWriter])
@pytest.mark.parametrize("name", ["w", "w_{.updater.iteration}"])
@pytest.mark.parametrize("full, number", LIMITS)
def test_a_full_disk_ends_training_and_keeps_the_snapshot(
    tmp_path, full, number, name, writer
):
    with full(tmp_path):
        snapshot = extensions.snapshot(filename=name, writer=writer and writer())
        trainer = trainer_in(tmp_path, Growing(), snapshot, iterations=9)
        with pytest.raises(OSError, match="could not write") as caught:
            trainer.run(show_loop_exception_msg=False)
        assert caught.value.errno == number
        assert trainer.updater.iteration in (3, 4)  # a thread fails later
        expected = ["w"] if name == "w" else ["w_1", "w_2"]
        assert sorted(os.listdir(tmp_path)) == expected
        snapshot = extensions.snapshot(filename=name, autoload=True)
        resumed = trainer_in(tmp_path, Growing(), snapshot, iterations=2)
        resumed.run()
        assert resumed.updater.iteration == 2


KILLED = """
    import os, signal
    import numpy
    from renga import extensions
    from renga.testing import get_trainer_with_mock_updater

    def save(path, target):
        with open(path, "wb") as file:
            numpy.savez(file, **target)
            if target["updater/iteration"] == 3:
                file.truncate(300)
                os.kill(os.getpid(), signal.SIGKILL)

    trainer = get_trainer_with_mock_updater((9, "iteration"), iter_per_epoch=1)
    trainer.out = {out!r}
    trainer.extend(extensions.snapshot(save, "w"))
    trainer.run()
"""


def test_a_kill_during_a_snapshot_keeps_the_previous_one(tmp_path):
    done = run_program(KILLED.format(out=str(tmp_path)))
    assert done.returncode == -signal.SIGKILL
    resumed = trainer_in(tmp_path, extensions.snapshot(filename="w", autoload=True))
    serializers.load_npz(tmp_path / "w", resumed)
    assert resumed.updater.iteration == 2
