"""Processes started beside MPI and threads are spawned, never forked."""

import os

import numpy as np
import pytest

from renga.communicators import local
from renga.extensions.snapshots.snapshot_writers import ProcessWriter
from renga.iterators import MultiprocessIterator


@pytest.fixture
def no_fork(monkeypatch):
    def refuse():
        raise AssertionError("a process was forked")

    monkeypatch.setattr(os, "fork", refuse)


def test_process_iterators(no_fork):
    def on_rank(comm):
        data = [10 * comm.rank + i for i in range(4)]
        iterator = MultiprocessIterator(data, 2, shuffle=False, n_processes=1)
        with iterator:
            return [iterator.next() for _ in range(2)]

    assert local.run(on_rank, ranks=2) == [[[0, 1], [2, 3]], [[10, 11], [12, 13]]]


def test_process_writers(no_fork, tmp_path):
    writer = ProcessWriter()
    writer("file", str(tmp_path), {"x": np.arange(3)})
    writer.finalize()
    with np.load(tmp_path / "file") as archive:
        np.testing.assert_array_equal(archive["x"], np.arange(3))
