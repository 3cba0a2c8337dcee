"""Snapshots: which are written, kept and loaded, and what a failure leaves."""

import contextlib
import errno
import os
import resource
import signal
import subprocess
import sys
import textwrap
import threading

import numpy
import pytest

from renga import extensions, serializers
from renga.extensions.snapshots import snapshot_writers
from renga.extensions.snapshots.files import find_snapshots
from renga.serializer import Deserializer
from renga.testing import get_trainer_with_mock_updater
from renga.training import Extension

WRITERS = [
    snapshot_writers.SimpleWriter,
    snapshot_writers.ThreadWriter,
    snapshot_writers.ProcessWriter,
    snapshot_writers.ThreadQueueWriter,
    snapshot_writers.ProcessQueueWriter,
]


class Weights:
    """Something to save that is large and changes in place."""

    def __init__(self, size=1000):
        self.w = numpy.zeros(size)

    def serialize(self, serializer):
        serializer("w", self.w)


def trainer_in(out, *extensions_, iterations=4):
    trainer = get_trainer_with_mock_updater((iterations, "iteration"), iter_per_epoch=1)
    trainer.out = str(out)
    for extension in extensions_:
        trainer.extend(extension)
    return trainer


def filling(weights):
    """An extension that writes the iteration into the weights."""
    fill = lambda t: weights.w.fill(t.updater.iteration)  # noqa: E731
    fill.priority = 999
    return fill


def loaded(path):
    weights = Weights()
    serializers.load_npz(path, weights)
    assert (weights.w == weights.w[0]).all()
    return weights.w[0]


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


def test_background_writer_saves_what_was_there_at_the_call(tmp_path):
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
def test_writers_raise_what_went_wrong(tmp_path, writer):
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


def test_arguments_of_savefun(tmp_path):
    writer = snapshot_writers.SimpleWriter(serializers.save_npz, compression=False)
    trainer_in(
        tmp_path, extensions.snapshot_object(Weights(), "plain", writer=writer)
    ).run()
    trainer_in(tmp_path, extensions.snapshot_object(Weights(), "packed")).run()
    plain, packed = ((tmp_path / n).stat().st_size for n in ("plain", "packed"))
    assert plain > 8000 > packed


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


def test_n_retains_removes_the_oldest_and_nothing_else(tmp_path):
    others = ["snapshot", "snapshot_iter", "my_snapshot_iter_1", "log"]
    for name in others:
        (tmp_path / name).touch()
    trainer_in(tmp_path, extensions.snapshot(n_retains=3), iterations=12).run()
    kept = [f"snapshot_iter_{i}" for i in (10, 11, 12)]
    assert set(os.listdir(tmp_path)) == {*others, *kept}


def test_autoload_takes_the_newest(tmp_path):
    trainer_in(tmp_path, extensions.snapshot(), iterations=11).run()
    for i in range(1, 12):  # written in the same instant, as far as the clock tells
        os.utime(tmp_path / f"snapshot_iter_{i}", (1, 1))
    (tmp_path / ".snapshot_iter_99.0badcafe.tmp").write_bytes(b"half")
    starts = []

    class Start(Extension):
        priority = 999

        def __call__(self, trainer):
            pass

        def initialize(self, trainer):
            starts.append(trainer.updater.iteration)

    def resume():
        snapshot = extensions.snapshot(autoload=True)
        trainer_in(tmp_path, Start(), snapshot, iterations=1).run()

    resume()
    os.utime(tmp_path / "snapshot_iter_5", (2, 2))
    resume()
    assert starts == [11, 5]


def test_autoload_of_nothing(tmp_path):
    trainer = trainer_in(tmp_path / "new", extensions.snapshot(autoload=True))
    trainer.run()
    assert trainer.updater.iteration == 4


def test_autoload_of_an_object(tmp_path):
    weights = Weights()
    weights.w += 5
    serializers.save_npz(tmp_path / "w_1", weights)
    fresh = Weights()
    snapshot = extensions.snapshot_object(fresh, "w_{.updater.epoch}", autoload=True)
    trainer_in(tmp_path, snapshot).run()
    assert (fresh.w == 5).all()


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


class Growing(Extension):
    """State that outgrows a small disk at the third iteration."""

    state = numpy.zeros(100)

    def __call__(self, trainer):
        size = 100 if trainer.updater.iteration < 3 else 200_000
        self.state = numpy.random.RandomState(0).normal(size=size)

    def serialize(self, serializer):
        if self.state.size > 100 or not isinstance(serializer, Deserializer):
            serializer("state", self.state)


@contextlib.contextmanager
def small_disk(path):
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "renga-test", path],
        stderr=subprocess.DEVNULL,
    )
    if mounted.returncode:
        pytest.skip("mounting a file system is not permitted here")
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


@pytest.mark.parametrize("writer", [None, snapshot_writers.ThreadWriter])
@pytest.mark.parametrize("name", ["w", "w_{.updater.iteration}"])
@pytest.mark.parametrize(
    "full, number", [(small_disk, errno.ENOSPC), (small_files, errno.EFBIG)]
)
def test_a_full_disk_ends_training_and_spares_the_snapshot(
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


def test_a_kill_amid_a_snapshot_spares_the_one_before(tmp_path):
    program = textwrap.dedent(KILLED.format(out=str(tmp_path)))
    done = subprocess.run([sys.executable, "-c", program])
    assert done.returncode == -signal.SIGKILL
    resumed = trainer_in(tmp_path, extensions.snapshot(filename="w", autoload=True))
    serializers.load_npz(tmp_path / "w", resumed)
    assert resumed.updater.iteration == 2


DAMAGES = {
    "cut short": lambda data: data[: len(data) // 2],
    "empty": lambda data: b"",
    "a turned bit": lambda data: data[:300] + bytes([data[300] ^ 8]) + data[301:],
    "another file": lambda data: b"\x89HDF\r\n\x1a\n" + bytes(100),
}


@pytest.mark.filterwarnings("ignore:snapshot. passed over")
@pytest.mark.parametrize("damage", DAMAGES)
def test_autoload_passes_over_damaged_snapshots(tmp_path, damage):
    trainer_in(tmp_path, extensions.snapshot(), iterations=4).run()
    for i in (3, 4):
        path = tmp_path / f"snapshot_iter_{i}"
        path.write_bytes(DAMAGES[damage](path.read_bytes()))
        os.utime(path, (10**10 + i, 10**10 + i))
    resumed = trainer_in(tmp_path, extensions.snapshot(autoload=True), iterations=1)
    with pytest.warns(UserWarning, match="snapshot: passed over: .*snapshot_iter_4"):
        resumed.run()
    assert resumed.updater.iteration == 2


def test_autoload_of_nothing_but_damaged_snapshots(tmp_path):
    (tmp_path / "snapshot_iter_7").write_bytes(b"PK\3\4")
    resumed = trainer_in(tmp_path, extensions.snapshot(autoload=True))
    with pytest.raises(serializers.FileFormatError, match="snapshot_iter_7"):
        resumed.run(show_loop_exception_msg=False)


def test_autoload_of_another_models_snapshot(tmp_path):
    """It is whole; that it does not fit is for the user to know."""
    serializers.save_npz(tmp_path / "w_1", Weights(1000))
    serializers.save_npz(tmp_path / "w_2", Weights(7))
    fresh = Weights()
    snapshot = extensions.snapshot_object(fresh, "w_{.updater.epoch}", autoload=True)
    with pytest.raises(ValueError, match=r"\(1000,\), got \(7,\)"):
        trainer_in(tmp_path, snapshot).run(show_loop_exception_msg=False)


def test_copies_and_links_are_no_snapshots(tmp_path):
    others = [
        "snapshot_iter_1.bak",
        "snapshot_iter_2 (copy)",
        "snapshot_iter_notes.txt",
        "snapshot_iter_3\n",
    ]
    for name in others:
        (tmp_path / name).write_bytes(b"mine")
        os.utime(tmp_path / name, (10**10, 10**10))
    (tmp_path / "snapshot_iter_90").mkdir()
    (tmp_path / "snapshot_iter_91").symlink_to("gone")
    trainer_in(tmp_path, extensions.snapshot(n_retains=2, autoload=True)).run()
    assert find_snapshots("snapshot_iter_{.updater.iteration}", tmp_path) == [
        str(tmp_path / f"snapshot_iter_{i}") for i in (3, 4)
    ]
    assert set(others) < set(os.listdir(tmp_path))


@pytest.mark.parametrize(
    "form, name, fits",
    [
        ("s_{.updater.iteration:06d}", "s_000012", True),
        ("s_{.updater.iteration:>6}", "s_    12", True),
        ("s_{.updater.iteration}", "s_12.bak", False),
        ("s_{.updater.epoch_detail:.2f}", "s_0.25", True),
        ("s_{.updater.epoch}_{.updater.iteration}", "s_1_200", True),
        ("s{{}}_{.updater.iteration}", "s{}_2", True),
        ("{.out}", "anything", True),
        ("s_{0.updater.iteration}", "s_2", True),
    ],
)
def test_names_that_a_format_can_become(tmp_path, form, name, fits):
    (tmp_path / name).touch()
    assert [os.path.basename(p) for p in find_snapshots(form, tmp_path)] == [
        name
    ] * fits
