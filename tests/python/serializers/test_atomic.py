"""atomic_write: the complete old or new file."""

import contextlib
import errno
import os
import signal
import stat

import pytest

from renga.serializers import atomic
from renga.serializers.atomic import atomic_write
from tests.scripts import run_program


def test_writes_bytes_and_text(tmp_path):
    with atomic_write(tmp_path / "b") as file:
        file.write(b"\x00\xff")
    with atomic_write(str(tmp_path / "t"), "w") as file:
        file.write("連歌\n")
    assert (tmp_path / "b").read_bytes() == b"\x00\xff"
    assert (tmp_path / "t").read_text(encoding="utf-8") == "連歌\n"
    assert sorted(os.listdir(tmp_path)) == ["b", "t"]


def test_the_file_appears_only_when_complete(tmp_path):
    path = tmp_path / "f"
    path.write_bytes(b"old")
    with atomic_write(path) as file:
        file.write(b"new and longer")
        file.flush()
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new and longer"


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_failure_leaves_the_old_file_and_no_litter(tmp_path, error):
    path = tmp_path / "f"
    path.write_bytes(b"old")
    with pytest.raises(error), atomic_write(path) as file:
        file.write(b"half")
        raise error
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["f"]


def test_full_disk_leaves_the_old_file(tmp_path):
    path = tmp_path / "f"
    path.write_bytes(b"old")
    program = f"""
        import resource, signal
        from renga.serializers.atomic import atomic_write
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
        try:
            with atomic_write({str(path)!r}) as file:
                file.write(bytes(100_000))
        except OSError:
            raise SystemExit(7)
    """
    done = run_program(program)
    assert done.returncode == 7
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["f"]


def test_a_killed_writer_leaves_the_old_file(tmp_path):
    path = tmp_path / "f"
    path.write_bytes(b"old")
    program = f"""
        import os, signal
        from renga.serializers.atomic import atomic_write
        with atomic_write({str(path)!r}) as file:
            file.write(bytes(100_000))
            file.flush()
            os.kill(os.getpid(), signal.SIGKILL)
    """
    done = run_program(program)
    assert done.returncode == -signal.SIGKILL
    assert path.read_bytes() == b"old"
    with atomic_write(path) as file:
        file.write(b"next")
    assert path.read_bytes() == b"next"


def test_permissions_follow_the_umask_and_the_old_file(tmp_path):
    plain, atomically = tmp_path / "plain", tmp_path / "atomically"
    plain.write_bytes(b"")
    with atomic_write(atomically):
        pass
    assert atomically.stat().st_mode == plain.stat().st_mode
    atomically.chmod(0o600)
    with atomic_write(atomically):
        pass
    assert stat.S_IMODE(atomically.stat().st_mode) == 0o600


def test_a_symbolic_link_is_kept(tmp_path):
    (tmp_path / "real").write_bytes(b"old")
    (tmp_path / "link").symlink_to("real")
    with atomic_write(tmp_path / "link") as file:
        file.write(b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == b"new"


def test_a_device_is_not_replaced():
    with atomic_write(os.devnull) as file:
        file.write(b"gone")
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)


def test_bad_mode_and_missing_folder(tmp_path):
    with pytest.raises(ValueError, match="atomic_write: expected a mode"):
        with atomic_write(tmp_path / "f", "ab"):
            pass
    with pytest.raises(FileNotFoundError):
        with atomic_write(tmp_path / "no" / "f"):
            pass


def test_the_data_reach_the_disk_before_the_name(tmp_path, monkeypatch):
    order = []
    monkeypatch.setattr(atomic.os, "fsync", lambda fd: order.append("fsync"))
    replace = os.replace
    monkeypatch.setattr(
        atomic.os, "replace", lambda *a: (order.append("replace"), replace(*a))
    )
    with atomic_write(tmp_path / "f"):
        pass
    assert order == ["fsync", "replace", "fsync"]  # the last: of the folder


def test_the_folder_reaches_the_disk_too(tmp_path, monkeypatch):
    flushed = []
    real = os.fsync
    monkeypatch.setattr(
        atomic.os,
        "fsync",
        lambda fd: (flushed.append(os.readlink(f"/proc/self/fd/{fd}")), real(fd)),
    )
    with atomic_write(tmp_path / "f"):
        pass
    assert len(flushed) == 2 and flushed[1] == str(tmp_path)


@pytest.mark.parametrize("number, passes", [(errno.EINVAL, True), (errno.EIO, False)])
def test_a_folder_that_cannot_be_flushed(tmp_path, monkeypatch, number, passes):
    real = os.fsync

    def fsync(descriptor):
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(number, os.strerror(number))
        real(descriptor)

    monkeypatch.setattr(atomic.os, "fsync", fsync)
    with contextlib.nullcontext() if passes else pytest.raises(OSError):
        with atomic_write(tmp_path / "f") as file:
            file.write(b"new")
    assert (tmp_path / "f").read_bytes() == b"new"


def test_a_file_that_cannot_be_flushed_is_no_file(tmp_path, monkeypatch):
    def fsync(descriptor):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    (tmp_path / "f").write_bytes(b"old")
    monkeypatch.setattr(atomic.os, "fsync", fsync)
    with pytest.raises(OSError), atomic_write(tmp_path / "f") as file:
        file.write(b"new")
    assert (tmp_path / "f").read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["f"]


@pytest.mark.parametrize("name", ["x" * 255, "é" * 127, "\udcff" * 200, " .", "a\nb"])
def test_names_as_long_and_odd_as_they_can_be(tmp_path, name):
    for given in (tmp_path / name, os.fsencode(tmp_path / name)):
        with atomic_write(given) as file:
            file.write(b"new")
        assert os.listdir(tmp_path) == [name]


def test_links_in_a_circle(tmp_path):
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(OSError) as caught, atomic_write(tmp_path / "a"):
        pass
    assert caught.value.errno == errno.ELOOP
    assert (tmp_path / "a").is_symlink() and (tmp_path / "b").is_symlink()
    (tmp_path / "c").symlink_to("new")
    with atomic_write(tmp_path / "c") as file:
        file.write(b"new")
    assert (tmp_path / "c").is_symlink() and (tmp_path / "new").read_bytes() == b"new"


def test_an_existing_folder_is_an_error(tmp_path):
    (tmp_path / "f").mkdir()
    with pytest.raises(IsADirectoryError), atomic_write(tmp_path / "f"):
        pass
    assert os.listdir(tmp_path) == ["f"]
