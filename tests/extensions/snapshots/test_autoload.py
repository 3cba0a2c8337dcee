"""Resuming from the newest snapshot that is not damaged."""

import io
import os
import zipfile

import pytest

from renga import extensions, serializers
from renga.extensions.snapshots.files import find_snapshots
from renga.training import Extension
from tests.extensions.snapshots.saved_weights import Weights, trainer_in


def test_autoload_loads_the_newest(tmp_path):
    trainer_in(tmp_path, extensions.snapshot(), iterations=11).run()
    for i in range(1, 12):  # the same modification time for all
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


def test_autoload_without_snapshots(tmp_path):
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


def with_a_turned_bit(data):
    """A zip file with another bit in the middle of its largest member."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        largest = max(archive.infolist(), key=lambda member: member.compress_size)
    header = 30 + len(largest.filename)
    at = largest.header_offset + header + largest.compress_size // 2
    return data[:at] + bytes([data[at] ^ 8]) + data[at + 1 :]


DAMAGES = {
    "cut short": lambda data: data[: len(data) // 2],
    "empty": lambda data: b"",
    "a turned bit": with_a_turned_bit,
    "another file": lambda data: b"\x89HDF\r\n\x1a\n" + bytes(100),
}


@pytest.mark.filterwarnings("ignore:snapshot. passed over")
@pytest.mark.parametrize("damage", DAMAGES)
def test_autoload_skips_damaged_snapshots(tmp_path, damage):
    trainer_in(tmp_path, extensions.snapshot(), iterations=4).run()
    for i in (3, 4):
        path = tmp_path / f"snapshot_iter_{i}"
        path.write_bytes(DAMAGES[damage](path.read_bytes()))
        os.utime(path, (10**10 + i, 10**10 + i))
    resumed = trainer_in(tmp_path, extensions.snapshot(autoload=True), iterations=1)
    with pytest.warns(UserWarning, match="snapshot: passed over: .*snapshot_iter_4"):
        resumed.run()
    assert resumed.updater.iteration == 2


def test_autoload_with_only_damaged_snapshots(tmp_path):
    (tmp_path / "snapshot_iter_7").write_bytes(b"PK\3\4")
    resumed = trainer_in(tmp_path, extensions.snapshot(autoload=True))
    with pytest.raises(serializers.FileFormatError, match="snapshot_iter_7"):
        resumed.run(show_loop_exception_msg=False)


def test_autoload_of_another_models_snapshot(tmp_path):
    """It is not damaged, so the mismatch is an error."""
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
def test_names_that_match_a_format(tmp_path, form, name, fits):
    (tmp_path / name).touch()
    assert [os.path.basename(p) for p in find_snapshots(form, tmp_path)] == [
        name
    ] * fits
