"""Memory that processes share."""

import errno
import os

import pytest

from renga.iterators import shared_block
from renga.iterators.shared_block import SharedBlock, open_block


def refuse(*arguments):
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("place", ["/memfd:", "/dev/shm", "folder"])
def test_all_pages_are_reserved(monkeypatch, tmp_path, place):
    if place == "/dev/shm":
        monkeypatch.delattr(os, "memfd_create")
    if place == "folder":
        place = str(tmp_path)
        monkeypatch.setattr(shared_block.tempfile, "tempdir", place)
        reserve = os.posix_fallocate

        def only_there(file, *extent):
            target = os.readlink(f"/proc/self/fd/{file}")
            return (reserve if target.startswith(place) else refuse)(file, *extent)

        monkeypatch.setattr(os, "posix_fallocate", only_there)
    block = SharedBlock(1_000_000)
    handle = block.handle
    assert os.readlink(f"/proc/self/fd/{handle.file}").startswith(place)
    assert os.fstat(handle.file).st_blocks * 512 >= 1_000_000
    assert list(tmp_path.iterdir()) == []  # nothing remains if this process dies
    other = open_block(handle)
    block.buf[999_990:] = b"0123456789"
    assert bytes(other[999_990:]) == b"0123456789" and other.nbytes == 1_000_000
    block.close()
    assert bytes(other[999_990:]) == b"0123456789"  # until nobody uses it


def test_too_little_memory_is_an_error_that_says_where(monkeypatch):
    files = len(os.listdir("/proc/self/fd"))
    monkeypatch.setattr(os, "posix_fallocate", refuse)
    with pytest.raises(
        OSError, match=r"expected 3\.0 MiB .* got memory: No space left"
    ):
        SharedBlock(3 << 20)
    assert len(os.listdir("/proc/self/fd")) == files


def test_a_descriptor_that_was_used_again_is_refused():
    block = SharedBlock(10)
    handle = block.handle
    block.close()
    files = [os.memfd_create("another") for _ in range(4)]
    assert handle.file in files
    with pytest.raises(ValueError, match="expected an open block, got a closed one"):
        open_block(handle)
    for file in files:
        os.close(file)
