"""A lock in memory that ranks share."""

import time

import numpy as np
import pytest

from renga._communicators import SharedLock
from renga.communicators import local
from renga.utils.type_check import InvalidType


def test_one_rank_at_a_time_has_the_lock():
    def act(comm):
        memory = comm.window_of_peer(comm.window((9,), np.int64), 0)
        lock = SharedLock(memory)
        if comm.rank == 0:
            memory[...] = 0
            lock.initialize()
        comm.barrier()
        for i in range(50):
            with lock:
                before = int(memory[8])
                if i % 10 == 0:
                    time.sleep(1e-3)
                memory[8] = before + 1
        comm.barrier()
        return int(memory[8])

    assert local.run(act, ranks=4) == [200] * 4


def test_an_error_releases_the_lock():
    memory = np.zeros(8, np.int64)
    lock = SharedLock(memory)
    lock.initialize()
    with pytest.raises(ZeroDivisionError), lock:
        _ = 1 / 0
    with lock, pytest.raises(RuntimeError, match="not locked: error"):
        lock.__enter__()  # this thread has it


def test_a_lock_that_nobody_has_is_not_unlocked():
    lock = SharedLock(np.zeros(8, np.int64))
    lock.initialize()
    with pytest.raises(RuntimeError, match="not unlocked: error"):
        lock.__exit__()


def test_memory_that_does_not_fit_is_refused():
    with pytest.raises(InvalidType, match=r"expected 40 contiguous bytes, got \(4,\)"):
        SharedLock(np.zeros(4, np.int64))
    with pytest.raises(InvalidType, match=r"expected 40 contiguous bytes, got \(8,\)"):
        SharedLock(np.zeros(16, np.int64)[::2])
    with pytest.raises(ValueError, match="aligned"):
        SharedLock(np.zeros(64, np.uint8)[1:])
    read_only = np.zeros(8, np.int64)
    read_only.flags.writeable = False
    with pytest.raises(ValueError):
        SharedLock(read_only)
    with pytest.raises(TypeError):
        SharedLock(3)
